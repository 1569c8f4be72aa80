package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// leaseSQL takes up to $4 messages, of high priorities first and in the order
// of sending within one, passing over those that others are taking just now.
// $3 has a place for each priority, from the highest: messages up to there are
// passed over.
//
// The rows come out of the inner query in that order because a nested loop
// gives them so, and only as many are locked as the LIMIT lets through. An
// ORDER BY around it would lock all.
const leaseSQL = `
WITH picked AS MATERIALIZED (
	SELECT x.id FROM unnest($3::bigint[]) WITH ORDINALITY AS h (after, n),
	LATERAL (
		SELECT m.id FROM waybill.queue_messages m
		WHERE m.queue = ` + queueNumber + ` AND m.state = 'ready' AND m.priority = 10 - h.n AND m.seq > h.after
			AND (m.expires_at IS NULL OR m.expires_at > now())
		ORDER BY m.seq LIMIT $4 FOR UPDATE SKIP LOCKED) x
	LIMIT $4)
UPDATE waybill.queue_messages m SET state = 'leased', receipt = $5, deliveries = m.deliveries + 1,
	due_at = now() + coalesce(nullif($6::bigint, 0), q.lease_ms) * interval '1 ms'
FROM waybill.queues q
WHERE q.tenant = $1 AND q.name = $2 AND m.queue = q.id AND m.id = ANY (ARRAY(SELECT id FROM picked))
RETURNING m.id, m.seq, m.priority, m.body, m.content_type, m.headers, m.group_key, m.dedupe_id, m.sent_at, m.deliveries, m.due_at`

// scan is where this process looks for messages. Those that were taken leave
// dead entries at the head of the index, and while an old transaction keeps
// vacuum from removing them each look from the head would pass over all of
// them again. So a look begins behind the last message taken; one from the head
// finds what came back or was committed late, whenever there is time for it.
type scan struct {
	after [MaxPriority + 1]int64 // by priority, from the highest
	full  pace
}

// fullEvery is how long a message that came back may be passed over on a queue
// that always has others.
const fullEvery = time.Second

// take leases up to n messages, first behind the last ones taken and then, if
// there were too few, from the head.
func (q *Queue) take(ctx context.Context, n int, lease time.Duration) ([]Delivery, error) {
	q.mu.Lock()
	after, full := q.scan.after, q.scan.full.may(fullEvery)
	q.mu.Unlock()
	if full {
		return q.takeAll(ctx, n, lease)
	}
	got, err := q.lease(ctx, after, n, lease)
	if err != nil || len(got) == n || !q.mayScan(0) {
		return got, err
	}
	more, err := q.takeAll(ctx, n-len(got), lease)
	if err != nil && len(got) > 0 {
		return got, nil // these are leased already; the next look tells
	}
	return append(got, more...), err
}

func (q *Queue) mayScan(every time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.scan.full.may(every)
}

func (q *Queue) takeAll(ctx context.Context, n int, lease time.Duration) ([]Delivery, error) {
	began := time.Now()
	got, err := q.lease(ctx, [MaxPriority + 1]int64{}, n, lease)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.scan.full.spent(began)
	return got, err
}

func (q *Queue) lease(ctx context.Context, after [MaxPriority + 1]int64, n int, lease time.Duration) ([]Delivery, error) {
	token := newToken()
	rows, err := q.db.Query(ctx, leaseSQL, q.cfg.Tenant, q.cfg.Name, after[:], n, token, lease.Milliseconds())
	if err != nil {
		return nil, fmt.Errorf("receive from queue %s: %w", q.cfg.Name, err)
	}
	got, err := pgx.CollectRows(rows, scanDelivery)
	if err != nil {
		return nil, fmt.Errorf("receive from queue %s: %w", q.cfg.Name, err)
	}
	slices.SortFunc(got, func(a, b Delivery) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.order, b.order))
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range got {
		got[i].Receipt = handle{got[i].ID, token}.String()
		q.scan.after[MaxPriority-got[i].Priority] = got[i].order
	}
	return got, nil
}

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var headers []byte
	var group, dedupe *string
	if err := row.Scan(&d.ID, &d.order, &d.Priority, &d.Body, &d.ContentType, &headers, &group, &dedupe, &d.SentAt, &d.Deliveries, &d.LeaseUntil); err != nil {
		return d, err
	}
	d.Group, d.DedupeID = orEmpty(group), orEmpty(dedupe)
	if headers != nil {
		err = json.Unmarshal(headers, &d.Headers)
	}
	return d, err
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
