package feed

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/queue"
)

// position is how far a partition is in the queue.
type position struct {
	partition int32
	next      int64
	topicID   uuid.UUID
}

// lockSQL makes and locks the positions of partitions. Whoever else puts the
// same partition's records, as a member may that lost it without noticing,
// waits here and then sees what is in already. Offsets of a topic that was made
// anew begin anew.
const lockSQL = `
INSERT INTO waybill.queue_feeds AS s (queue, group_name, topic, topic_id, partition, next_offset)
SELECT q.id, $3, $4, $5, p, 0 FROM waybill.queues q, unnest($6::int[]) AS p WHERE q.tenant = $1 AND q.name = $2 ORDER BY p
ON CONFLICT (queue, group_name, topic, partition) DO UPDATE SET topic_id = excluded.topic_id,
	next_offset = CASE WHEN s.topic_id = excluded.topic_id THEN s.next_offset ELSE 0 END
RETURNING partition, next_offset`

const moveSQL = `
UPDATE waybill.queue_feeds s SET next_offset = p.next, updated_at = now()
FROM unnest($5::int[], $6::bigint[]) AS p (partition, next)
WHERE s.queue = (SELECT id FROM waybill.queues WHERE tenant = $1 AND name = $2) AND s.group_name = $3 AND s.topic = $4 AND s.partition = p.partition`

// maxPart bounds the bodies of one Send.
const maxPart = 8 << 20

// put brings records into the queue and moves the positions, in one
// transaction.
func (f *Feed) put(ctx context.Context, recs []*kgo.Record) error {
	id, err := f.topicID(ctx)
	if err != nil {
		return err
	}
	// Read before the transaction: the registry may be slow.
	messages := make([]*queue.Message, len(recs))
	for i, rec := range recs {
		if messages[i], err = f.message(ctx, rec); err != nil {
			return err
		}
	}
	return pgx.BeginFunc(ctx, f.deps.DB, func(tx pgx.Tx) error {
		next, err := f.lock(ctx, tx, id, recs)
		if err != nil {
			return err
		}
		var part []queue.Message
		size := 0
		flush := func() error {
			_, err := f.queue.Send(ctx, tx, part...)
			part, size = part[:0], 0
			return err
		}
		for i, rec := range recs {
			if rec.Offset < next[rec.Partition] {
				continue // in already
			}
			next[rec.Partition] = rec.Offset + 1
			m := messages[i]
			if m == nil {
				continue
			}
			if len(m.Body) > queue.MaxBody {
				if err := f.tooLarge(ctx, tx, rec); err != nil {
					return err
				}
				continue
			}
			if size += len(m.Body); size > maxPart {
				if err := flush(); err != nil {
					return err
				}
			}
			part = append(part, *m)
		}
		if err := flush(); err != nil {
			return err
		}
		return f.move(ctx, tx, next)
	})
}

func (f *Feed) lock(ctx context.Context, tx pgx.Tx, id uuid.UUID, recs []*kgo.Record) (map[int32]int64, error) {
	next := map[int32]int64{}
	var partitions []int32
	for _, rec := range recs {
		if _, ok := next[rec.Partition]; !ok {
			next[rec.Partition] = 0
			partitions = append(partitions, rec.Partition)
		}
	}
	rows, err := tx.Query(ctx, lockSQL, f.cfg.Tenant, f.cfg.Queue, f.cfg.Group, f.cfg.Topic, id, partitions)
	if err != nil {
		return nil, fmt.Errorf("lock positions: %w", err)
	}
	stored, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p position, err error) {
		return p, row.Scan(&p.partition, &p.next)
	})
	if err != nil {
		return nil, fmt.Errorf("lock positions: %w", err)
	}
	if len(stored) == 0 {
		return nil, fmt.Errorf("%w as %q: declare it first, as waybill queue create does", queue.ErrUnknown, f.cfg.Queue)
	}
	for _, p := range stored {
		next[p.partition] = p.next
	}
	return next, nil
}

func (f *Feed) move(ctx context.Context, tx pgx.Tx, next map[int32]int64) error {
	var partitions []int32
	var offsets []int64
	for p, o := range next {
		partitions, offsets = append(partitions, p), append(offsets, o)
	}
	if _, err := tx.Exec(ctx, moveSQL, f.cfg.Tenant, f.cfg.Queue, f.cfg.Group, f.cfg.Topic, partitions, offsets); err != nil {
		return fmt.Errorf("move positions: %w", err)
	}
	return nil
}

// tooLarge leaves a record out of the queue, not out of mind.
func (f *Feed) tooLarge(ctx context.Context, tx pgx.Tx, rec *kgo.Record) error {
	place := fmt.Sprintf("%s/%d@%d", rec.Topic, rec.Partition, rec.Offset)
	return incident.Record(ctx, tx, incident.Incident{
		Part: "queue", Kind: "record too large", Subject: f.cfg.Queue + " " + place,
		Text: fmt.Sprintf("The record %s is larger than the %d bytes a message may have and was left out of queue %s; read it from the topic: waybill tail %s",
			place, queue.MaxBody, f.cfg.Queue, rec.Topic),
	})
}
