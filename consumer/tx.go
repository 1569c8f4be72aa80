package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNotYours is what a handler gets that tries to end its transaction.
var ErrNotYours = errors.New("the transaction of a handler ends when the handler returns")

// handlerTx is a transaction as a handler sees it. A handler that committed it
// would part its effects from the claim.
type handlerTx struct{ pgx.Tx }

func (handlerTx) Commit(context.Context) error   { return ErrNotYours }
func (handlerTx) Rollback(context.Context) error { return ErrNotYours }

const claimSQL = `INSERT INTO waybill.inbox (event_id, group_name) VALUES ($1, $2) ON CONFLICT DO NOTHING`

// begin opens a transaction and, in the same round trip, claims an event for a
// group. fresh is false if the group has handled it before. While another
// transaction holds the claim this waits for its end.
func begin(ctx context.Context, conn *pgx.Conn, id [16]byte, group string) (t pgx.Tx, fresh bool, err error) {
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{})
	b.Queue(claimSQL, id, group).Exec(func(tag pgconn.CommandTag) error {
		fresh = tag.RowsAffected() == 1
		return nil
	})
	r := conn.SendBatch(ctx, &b)
	if err := r.Close(); err != nil {
		if t := r.Tx(); t != nil {
			_ = t.Rollback(ctx) // the error told is the cause
		}
		return nil, false, fmt.Errorf("claim event: %w", err)
	}
	return r.Tx(), fresh, nil
}
