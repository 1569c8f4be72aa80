package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// State is where a notice stands. The set is closed.
type State string

// The states of a notice. It goes from Sent to Withdrawn; the others are ends
// from the beginning.
const (
	Sent      State = "SENT"      // the courier was told
	Failed    State = "FAILED"    // and could not be
	Withdrawn State = "WITHDRAWN" // the courier was told, and let go since
	Barred    State = "BARRED"    // the attempt was over before the courier could be told
)

// Notice tells a courier of an order.
type Notice struct {
	Tenant  uuid.UUID // whose order it is
	Order   uuid.UUID
	Attempt int32     // from 1; a courier who is told of an order twice has two
	Courier uuid.UUID // who is told
	Fee     uuid.UUID // nil where the attempt was over before its fee was heard of
	State   State     // empty while it is being sent
	Reason  string    // of a state other than Sent, for an operator
	MadeAt  time.Time // when it was sent, had failed or was barred
	EndedAt *time.Time
}

// ErrNotFound is an order of the tenant of which no notice is known.
var ErrNotFound = errors.New("no notice of such an order")

const selectNotice = `SELECT tenant, order_id, attempt, courier_id, coalesce(fee_id, '00000000-0000-0000-0000-000000000000'),
	state, reason, made_at, ended_at FROM dispatch.notices `

func scanNotice(row pgx.CollectableRow) (n Notice, err error) {
	err = row.Scan(&n.Tenant, &n.Order, &n.Attempt, &n.Courier, &n.Fee, &n.State, &n.Reason, &n.MadeAt, &n.EndedAt)
	n.MadeAt = n.MadeAt.UTC()
	if n.EndedAt != nil {
		*n.EndedAt = n.EndedAt.UTC()
	}
	return n, err
}

// Notice is the notice of an order's latest attempt, which is the one that
// stands if one does; [ErrNotFound] if tenant has none of that order.
func (d *Desk) Notice(ctx context.Context, tenant, order uuid.UUID) (n Notice, err error) {
	err = pg.InTenant(ctx, d.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectNotice+`WHERE tenant = $1 AND order_id = $2 ORDER BY attempt DESC LIMIT 1`, tenant, order)
		if err != nil {
			return err
		}
		n, err = pgx.CollectExactlyOneRow(rows, scanNotice)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Notice{}, ErrNotFound
	}
	if err != nil {
		return Notice{}, fmt.Errorf("read the notice of order %s: %w", order, err)
	}
	return n, nil
}

// maxTold bounds the notices of a courier that are read at once.
const maxTold = 50

// Told is the notices that stand for a courier, of all tenants, the newest
// first; 50 at most.
func (d *Desk) Told(ctx context.Context, courier uuid.UUID) (told []Notice, err error) {
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT set_config('waybill.courier', $1, true)`, courier.String())
		b.Queue(selectNotice+`WHERE courier_id = $1 AND state = 'SENT' ORDER BY made_at DESC LIMIT $2`, courier, maxTold).
			Query(func(rows pgx.Rows) (err error) { told, err = pgx.CollectRows(rows, scanNotice); return err })
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return nil, fmt.Errorf("read the notices of courier %s: %w", courier, err)
	}
	return told, nil
}
