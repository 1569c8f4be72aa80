package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/event"
)

// sendSQL puts messages into the queue. A dedupe id is claimed first: of two
// transactions that claim the same, the second waits for the end of the first.
// Claims are made in the order of the ids, so that batches do not wait for each
// other crosswise.
const sendSQL = `
WITH q AS (SELECT id, dedupe_ms, ttl_ms FROM waybill.queues WHERE tenant = $1 AND name = $2),
input AS (
	SELECT * FROM unnest($3::uuid[], $4::smallint[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[])
		WITH ORDINALITY AS i (id, priority, body, content_type, headers, group_key, dedupe_id, delay_ms, ttl_ms, n)),
claim AS (
	INSERT INTO waybill.queue_dedupe AS d (queue, dedupe_id, message_id, expires_at)
	SELECT q.id, i.dedupe_id, i.id, now() + q.dedupe_ms * interval '1 ms' FROM q, input i WHERE i.dedupe_id IS NOT NULL ORDER BY i.dedupe_id
	ON CONFLICT (queue, dedupe_id) DO UPDATE SET
		message_id = CASE WHEN d.expires_at <= now() THEN excluded.message_id ELSE d.message_id END,
		expires_at = CASE WHEN d.expires_at <= now() THEN excluded.expires_at ELSE d.expires_at END
	RETURNING dedupe_id, message_id),
put AS (
	INSERT INTO waybill.queue_messages (queue, id, priority, state, due_at, expires_at, group_key, dedupe_id, content_type, headers, body)
	SELECT q.id, i.id, i.priority,
		CASE WHEN i.group_key IS NOT NULL THEN 'waiting' WHEN i.delay_ms > 0 THEN 'delayed' ELSE 'ready' END,
		now() + i.delay_ms * interval '1 ms',
		now() + (i.delay_ms + nullif(coalesce(nullif(i.ttl_ms, 0), q.ttl_ms), 0)) * interval '1 ms',
		i.group_key, i.dedupe_id, i.content_type, i.headers::jsonb, i.body
	FROM q, input i LEFT JOIN claim c ON c.dedupe_id = i.dedupe_id
	WHERE c.message_id IS NULL OR c.message_id = i.id
	ORDER BY i.n
	RETURNING queue, group_key),
stir AS (
	INSERT INTO waybill.queue_stirred (queue, group_key)
	SELECT DISTINCT queue, group_key FROM put WHERE group_key IS NOT NULL)
SELECT coalesce(c.message_id, i.id) FROM q, input i LEFT JOIN claim c ON c.dedupe_id = i.dedupe_id ORDER BY i.n`

// Send puts messages into the queue, all or none, and tells what became of
// each. With the caller's transaction as db they are in the queue if and only
// if that commits. More than [MaxBatch] are refused, as are more than 16 MiB of
// bodies: send them in parts.
//
// A queue that has its MaxLength refuses with [ErrFull]. The length is looked
// at about once a second: what is sent between two looks may go past it.
func (q *Queue) Send(ctx context.Context, db DB, messages ...Message) ([]Sent, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	b, err := newBatch(messages)
	if err != nil {
		return nil, err
	}
	if err := q.enter(ctx, db, int64(len(messages))); err != nil {
		return nil, err
	}
	ids, err := q.insert(ctx, db, b)
	if err != nil {
		return nil, fmt.Errorf("send to queue %s: %w", q.cfg.Name, err)
	}
	q.cfg.Signals.sent(q)
	return b.answer(ids), nil
}

const foreignKey = "23503" // a row that refers to one that is not there, as Postgres numbers it

func (q *Queue) insert(ctx context.Context, db DB, b *batch) ([]uuid.UUID, error) {
	rows, err := db.Query(ctx, sendSQL, q.cfg.Tenant, q.cfg.Name,
		b.ids, b.priorities, b.bodies, b.types, b.headers, b.groups, b.dedupes, b.delays, b.ttls)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	var gone *pgconn.PgError
	if err == nil && len(ids) == 0 || errors.As(err, &gone) && gone.Code == foreignKey {
		err = q.unknown() // or removed at this moment
	}
	return ids, err
}

// batch is messages by column. Of those with the same dedupe id it has the
// first.
type batch struct {
	place                    []int // of each message in the columns
	first                    []bool
	ids                      []uuid.UUID
	priorities               []int16
	bodies                   [][]byte
	types                    []string
	headers, groups, dedupes []*string
	delays, ttls             []int64
	bytes                    int
}

func newBatch(messages []Message) (*batch, error) {
	if len(messages) > MaxBatch {
		return nil, fmt.Errorf("%w number of messages %d: at most %d at a time", ErrInvalid, len(messages), MaxBatch)
	}
	b := &batch{}
	seen := map[string]int{}
	for i := range messages {
		m := &messages[i]
		if at, ok := seen[m.DedupeID]; ok && m.DedupeID != "" {
			b.place, b.first = append(b.place, at), append(b.first, false)
			continue
		}
		seen[m.DedupeID] = len(b.ids)
		b.place, b.first = append(b.place, len(b.ids)), append(b.first, true)
		if err := b.add(m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	return b, nil
}

func (b *batch) add(m *Message) error {
	headers, err := m.headers()
	if err == nil {
		err = m.check()
	}
	if b.bytes += len(m.Body); err == nil && b.bytes > maxBatchMem {
		err = fmt.Errorf("%w: the messages up to here have more than %d bytes", ErrInvalid, maxBatchMem)
	}
	if err != nil {
		return err
	}
	body, kind := m.Body, m.ContentType
	if body == nil {
		body = []byte{} // NULL otherwise
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	b.ids, b.priorities = append(b.ids, event.NewID()), append(b.priorities, int16(m.Priority))
	b.bodies, b.types, b.headers = append(b.bodies, body), append(b.types, kind), append(b.headers, headers)
	b.groups, b.dedupes = append(b.groups, orNull(m.Group)), append(b.dedupes, orNull(m.DedupeID))
	// Rounded up: a delay of less than a millisecond is a delay.
	b.delays, b.ttls = append(b.delays, (m.Delay+999_999).Milliseconds()), append(b.ttls, (m.TTL+999_999).Milliseconds())
	return nil
}

func (b *batch) answer(ids []uuid.UUID) []Sent {
	out := make([]Sent, len(b.place))
	for i, at := range b.place {
		out[i] = Sent{ID: ids[at], Duplicate: !b.first[i] || ids[at] != b.ids[at]}
	}
	return out
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
