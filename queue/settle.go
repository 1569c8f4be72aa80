package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// held are the messages that the receipts in $3 and $4 are good for. Only what
// is leased has a receipt. The state is not asked for on purpose: the planner,
// which knows few leases or none, would then read the index of all of them.
const held = `m.queue = ` + queueNumber + ` AND m.id = ANY ($3::uuid[])
	AND (m.id, m.receipt) IN (SELECT r.id, r.token FROM unnest($3::uuid[], $4::bigint[]) AS r (id, token))`

const ackSQL = `
WITH gone AS (DELETE FROM waybill.queue_messages m WHERE ` + held + ` RETURNING m.queue, m.id, m.receipt, m.group_key),
stir AS (INSERT INTO waybill.queue_stirred (queue, group_key) SELECT queue, group_key FROM gone WHERE group_key IS NOT NULL)
SELECT id, receipt FROM gone`

// Ack says that messages are done: they leave the queue. With a transaction as
// db they leave if and only if that commits. Receipts that are no longer good
// are a [*ReceiptError]; the others are done all the same, unless the caller
// undoes its transaction.
func (q *Queue) Ack(ctx context.Context, db DB, receipts ...string) error {
	return q.settle(ctx, db, "acknowledge", ackSQL, receipts)
}

// buried takes messages that may not be delivered again from the queue, to its
// dead letters or to the queue for them.
const buried = `
gone AS (
	DELETE FROM waybill.queue_messages m USING taken t, waybill.queues q
	WHERE q.id = t.queue AND m.queue = t.queue AND m.id = t.id AND t.state = 'leased' AND t.deliveries >= q.max_deliveries
	RETURNING m.*, q.dead_letter, q.name),
dead AS (
	INSERT INTO waybill.queue_dead (queue, id, priority, deliveries, sent_at, group_key, dedupe_id, content_type, headers, body, error)
	SELECT queue, id, priority, deliveries, sent_at, group_key, dedupe_id, content_type, headers, body, coalesce(nullif($5, ''), error)
	FROM gone WHERE dead_letter IS NULL
	ON CONFLICT DO NOTHING),
passed AS (
	INSERT INTO waybill.queue_messages (queue, id, priority, state, due_at, group_key, content_type, headers, body, error)
	SELECT dead_letter, id, priority, CASE WHEN group_key IS NULL THEN 'ready' ELSE 'waiting' END, now(), group_key, content_type,
		coalesce(headers, '{}') || jsonb_build_object('dead-letter-queue', name, 'dead-letter-deliveries', deliveries::text),
		body, coalesce(nullif($5, ''), error)
	FROM gone WHERE dead_letter IS NOT NULL
	ON CONFLICT DO NOTHING
	RETURNING queue, group_key),
stir AS (
	INSERT INTO waybill.queue_stirred (queue, group_key)
	SELECT queue, group_key FROM gone WHERE group_key IS NOT NULL
	UNION ALL SELECT queue, group_key FROM passed WHERE group_key IS NOT NULL)`

// nackSQL: $5 is the reason, $6 the delay in milliseconds, $7 how many
// deliveries not to count.
const nackSQL = `
WITH taken AS MATERIALIZED (
	SELECT m.queue, m.id, m.receipt, m.state, m.deliveries - $7::int AS deliveries FROM waybill.queue_messages m
	WHERE ` + held + ` ORDER BY m.id FOR UPDATE),` + buried + `,
back AS (
	UPDATE waybill.queue_messages m SET state = CASE WHEN $6::bigint > 0 THEN 'delayed' ELSE 'ready' END, receipt = NULL,
		due_at = now() + $6::bigint * interval '1 ms', deliveries = t.deliveries, error = coalesce(nullif($5, ''), m.error)
	FROM taken t, waybill.queues q
	WHERE q.id = t.queue AND m.queue = t.queue AND m.id = t.id AND t.deliveries < q.max_deliveries)
SELECT id, receipt FROM taken`

// maxReason is how much of a reason is kept, in bytes.
const maxReason = 2 << 10

// Nack gives messages back, to be delivered again after a delay; with a group,
// the group waits for it. One that was delivered as often as its queue allows
// is dead instead. The reason is kept for whoever looks at the dead letters.
func (q *Queue) Nack(ctx context.Context, db DB, delay time.Duration, reason string, receipts ...string) error {
	if err := within("delay", delay, 0, maxDelay); err != nil {
		return err
	}
	return q.settle(ctx, db, "give back", nackSQL, receipts, cut(reason, maxReason), (delay + 999_999).Milliseconds(), 0)
}

// Release gives messages back that nobody worked on: the delivery does not
// count.
func (q *Queue) Release(ctx context.Context, db DB, receipts ...string) error {
	return q.settle(ctx, db, "release", nackSQL, receipts, "", 0, 1)
}

const extendSQL = `
UPDATE waybill.queue_messages m SET due_at = now() + $5::bigint * interval '1 ms' WHERE ` + held + `
RETURNING m.id, m.receipt`

// Extend makes leases end a time from now, whatever they were.
func (q *Queue) Extend(ctx context.Context, db DB, lease time.Duration, receipts ...string) error {
	if err := within("lease", lease, minLease, maxLease); err != nil {
		return err
	}
	return q.settle(ctx, db, "extend", extendSQL, receipts, lease.Milliseconds())
}

func (q *Queue) settle(ctx context.Context, db DB, what, sql string, receipts []string, args ...any) error {
	if len(receipts) == 0 {
		return nil
	}
	ids, tokens, err := parseReceipts(receipts)
	if err != nil {
		return err
	}
	rows, err := db.Query(ctx, sql, append([]any{q.cfg.Tenant, q.cfg.Name, ids, tokens}, args...)...)
	if err != nil {
		return fmt.Errorf("%s messages of queue %s: %w", what, q.cfg.Name, err)
	}
	done, err := pgx.CollectRows(rows, scanHandle)
	if err != nil {
		return fmt.Errorf("%s messages of queue %s: %w", what, q.cfg.Name, err)
	}
	return refused(ids, tokens, done)
}

func scanHandle(row pgx.CollectableRow) (h handle, err error) {
	var token *int64
	err = row.Scan(&h.id, &token)
	if token != nil {
		h.token = *token
	}
	return h, err
}
