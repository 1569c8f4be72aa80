package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// claimManySQL is claimSQL for events of several partitions: either all of them
// are still ours or nothing is claimed.
const claimManySQL = `WITH lost AS MATERIALIZED (
		SELECT v.topic, v.partition FROM unnest($3::text[], $4::int[], $5::bigint[]) AS v(topic, partition, epoch)
		WHERE NOT EXISTS (SELECT FROM waybill.owner o
			WHERE o.group_name = $1 AND o.topic = v.topic AND o.partition = v.partition AND o.epoch = v.epoch)),
	claimed AS (
		INSERT INTO waybill.inbox (event_id, group_name)
		SELECT id, $1 FROM unnest($2::uuid[]) AS id WHERE NOT EXISTS (SELECT FROM lost)
		ORDER BY id ON CONFLICT DO NOTHING RETURNING event_id)
	SELECT (SELECT array_agg(topic) FROM lost), (SELECT array_agg(partition) FROM lost), count(*) = cardinality($2),
		CASE WHEN count(*) < cardinality($2) THEN array_agg(event_id) END FROM claimed`

// queueClaim asks for the claim of ids, which are of parts. The answer is told
// by what is returned, once the batch was read: the partitions that are not ours,
// whether all were claimed, and which if not.
func (s *session) queueClaim(b *pgx.Batch, parts []*partition, ids []uuid.UUID) *claimed {
	c := &claimed{}
	if len(parts) == 1 {
		p, ours := parts[0], false
		b.Queue(claimSQL, s.cfg.Group, ids, p.topic, p.id, p.owner).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&ours, &c.all, &c.ids)
			if err == nil && !ours {
				c.lost = parts
			}
			return err
		})
		return c
	}
	places, owners := make([]place, len(parts)), make([]int64, len(parts))
	for i, p := range parts {
		places[i], owners[i] = p.place, p.owner
	}
	topics, numbers := columns(places)
	b.Queue(claimManySQL, s.cfg.Group, ids, topics, numbers, owners).QueryRow(func(row pgx.Row) error {
		var topics []string
		var numbers []int32
		if err := row.Scan(&topics, &numbers, &c.all, &c.ids); err != nil {
			return err
		}
		for i := range topics {
			at := slices.Index(places, place{topics[i], numbers[i]})
			c.lost = append(c.lost, parts[at])
		}
		return nil
	})
	return c
}

// claimed is the answer to a claim.
type claimed struct {
	lost []*partition // that are not ours; nothing was claimed then
	all  bool
	ids  []uuid.UUID // if not all
}

// claim opens a transaction and, in the same round trip, claims events of parts,
// and reads how far their keys have come where the group looks at that. Those
// events it returns are to be handled; the others have been. While another
// transaction holds a claim this waits for its end.
func (s *session) claim(ctx context.Context, conn *pgx.Conn, parts []*partition, ms []*message) (t pgx.Tx, fresh []uuid.UUID, lasts map[numbering]standing, err error) {
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{})
	ids := claimable(ms)
	c := s.queueClaim(&b, parts, ids)
	lasts = s.queueLasts(&b, parts[0], ms)
	r := conn.SendBatch(ctx, &b)
	err = r.Close()
	t = r.Tx()
	switch {
	case err != nil:
		err = &outageError{fmt.Errorf("claim events: %w", err)}
	case len(c.lost) > 0:
		err = &fencedError{c.lost}
	case c.all: // the rule, for which no list is sent
		return t, ids, lasts, nil
	default:
		return t, c.ids, lasts, nil
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
