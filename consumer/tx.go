package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// ErrNotYours is what a handler gets that tries to end its transaction.
var ErrNotYours = errors.New("the transaction of a handler ends when the handler returns")

// handlerTx is a transaction as a handler sees it. A handler that committed it
// would part its effects from the claim.
type handlerTx struct{ pgx.Tx }

func (handlerTx) Commit(context.Context) error   { return ErrNotYours }
func (handlerTx) Rollback(context.Context) error { return ErrNotYours }

// claimSQL claims events of one partition for a group if the partition's epoch
// is still ours, and tells which of them the group had not handled before. The
// ids are ordered, so that two members that claim the same do not deadlock.
//
// The epoch is read, not locked: taking over waits for no handler. That is
// enough. The next owner begins at the saved watermark, so an event whose
// transaction of ours is still open comes to it again, before any later event
// of the key, and its claim waits for ours: if ours commits the event is a
// duplicate, if not it is the next owner's. Nothing later of the key is claimed
// by us, since that claim would read the new epoch; one that read the old one a
// moment before it changed is just such an open transaction.
const claimSQL = `WITH ours AS MATERIALIZED (
		SELECT FROM waybill.owner WHERE group_name = $1 AND topic = $3 AND partition = $4 AND epoch = $5),
	claimed AS (
		INSERT INTO waybill.inbox (event_id, group_name)
		SELECT id, $1 FROM unnest($2::uuid[]) AS id WHERE EXISTS (SELECT FROM ours)
		ORDER BY id ON CONFLICT DO NOTHING RETURNING event_id)
	SELECT EXISTS (SELECT FROM ours), count(*) = cardinality($2),
		CASE WHEN count(*) < cardinality($2) THEN array_agg(event_id) END FROM claimed`

// claim opens a transaction and, in the same round trip, claims events of p, and
// reads how far their keys have come where the group looks at that. Those events
// it returns are to be handled; the others have been. While another transaction
// holds a claim this waits for its end.
func (s *session) claim(ctx context.Context, conn *pgx.Conn, p *partition, ms []*message) (t pgx.Tx, claimed []uuid.UUID, lasts map[numbering]standing, err error) {
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{})
	ours, all, ids := false, false, claimable(ms)
	b.Queue(claimSQL, s.cfg.Group, ids, p.topic, p.id, p.owner).QueryRow(func(row pgx.Row) error {
		return row.Scan(&ours, &all, &claimed)
	})
	lasts = s.queueLasts(&b, p, ms)
	r := conn.SendBatch(ctx, &b)
	err = r.Close()
	t = r.Tx()
	switch {
	case err != nil:
		err = &outageError{fmt.Errorf("claim events: %w", err)}
	case !ours:
		err = errFenced
	case all: // the rule, for which no list is sent
		return t, ids, lasts, nil
	default:
		return t, claimed, lasts, nil
	}
	if t != nil {
		_ = t.Rollback(ctx) // the error told is the cause
	}
	return nil, nil, nil, err
}

// claimable are the ids of events that have effects.
func claimable(ms []*message) []uuid.UUID {
	ids := make([]uuid.UUID, 0, len(ms))
	for _, m := range ms {
		if !m.route.pass {
			ids = append(ids, m.env.ID)
		}
	}
	return ids
}
