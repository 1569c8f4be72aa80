package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Dead is a dead letter: a message that was delivered as often as its queue
// allows.
type Dead struct {
	ID          uuid.UUID
	Body        []byte
	ContentType string
	Headers     map[string]string
	Priority    int
	Group       string
	DedupeID    string
	SentAt      time.Time
	DiedAt      time.Time
	Deliveries  int
	Error       string // of the last delivery
}

// Dead lists dead letters, oldest death first, up to limit and behind the one
// with the id after; uuid.Nil begins.
func (q *Queue) Dead(ctx context.Context, after uuid.UUID, limit int) ([]Dead, error) {
	if err := withinNumber("limit", int64(limit), 1, MaxBatch); err != nil {
		return nil, err
	}
	if err := q.exists(ctx); err != nil {
		return nil, err
	}
	rows, err := q.db.Query(ctx, `
		SELECT id, body, content_type, headers, priority, coalesce(group_key, ''), coalesce(dedupe_id, ''), sent_at, died_at, deliveries, coalesce(error, '')
		FROM waybill.queue_dead WHERE queue = `+queueNumber+`
			AND (died_at, id) > (coalesce((SELECT died_at FROM waybill.queue_dead WHERE queue = `+queueNumber+` AND id = $3), '-infinity'), $3)
		ORDER BY died_at, id LIMIT $4`, q.cfg.Tenant, q.cfg.Name, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list dead letters of queue %s: %w", q.cfg.Name, err)
	}
	all, err := pgx.CollectRows(rows, scanDead)
	if err != nil {
		return nil, fmt.Errorf("list dead letters of queue %s: %w", q.cfg.Name, err)
	}
	return all, nil
}

func scanDead(row pgx.CollectableRow) (d Dead, err error) {
	var headers []byte
	err = row.Scan(&d.ID, &d.Body, &d.ContentType, &headers, &d.Priority, &d.Group, &d.DedupeID, &d.SentAt, &d.DiedAt, &d.Deliveries, &d.Error)
	if err == nil && headers != nil {
		err = json.Unmarshal(headers, &d.Headers)
	}
	return d, err
}

// letters are the dead letters that $3 names, or all if it names none, up to $4
// and dead at $5.
const letters = `
letters AS (
	DELETE FROM waybill.queue_dead d WHERE d.queue = ` + queueNumber + ` AND d.id = ANY (ARRAY(
		SELECT id FROM waybill.queue_dead WHERE queue = ` + queueNumber + ` AND (cardinality($3::uuid[]) = 0 OR id = ANY ($3::uuid[])) AND died_at <= $5
		ORDER BY died_at, id LIMIT $4 FOR UPDATE SKIP LOCKED))
	RETURNING d.*)`

const redriveSQL = `
WITH` + letters + `,
back AS (
	INSERT INTO waybill.queue_messages (queue, id, priority, state, due_at, sent_at, group_key, dedupe_id, content_type, headers, body, error)
	SELECT queue, id, priority, CASE WHEN group_key IS NULL THEN 'ready' ELSE 'waiting' END, now(), sent_at, group_key, dedupe_id, content_type, headers, body, error
	FROM letters ORDER BY died_at, id
	RETURNING queue, group_key),
stir AS (INSERT INTO waybill.queue_stirred (queue, group_key) SELECT DISTINCT queue, group_key FROM back WHERE group_key IS NOT NULL)
SELECT count(*) FROM letters`

// Redrive puts dead letters back into the queue, behind what is there, with no
// delivery counted: those with ids, or all if none are given. It tells how many.
func (q *Queue) Redrive(ctx context.Context, ids ...uuid.UUID) (int64, error) {
	n, err := q.inParts(ctx, redriveSQL, ids)
	if err != nil {
		return n, fmt.Errorf("redrive dead letters of queue %s, %d of them done: %w", q.cfg.Name, n, err)
	}
	if n > 0 {
		q.cfg.Signals.sent(q)
	}
	return n, nil
}

// Drop removes dead letters for good: those with ids, or all if none are given.
func (q *Queue) Drop(ctx context.Context, ids ...uuid.UUID) (int64, error) {
	n, err := q.inParts(ctx, `WITH`+letters+` SELECT count(*) FROM letters`, ids)
	if err != nil {
		return n, fmt.Errorf("drop dead letters of queue %s, %d of them done: %w", q.cfg.Name, n, err)
	}
	return n, nil
}

const purgeSQL = `
WITH gone AS (
	DELETE FROM waybill.queue_messages m WHERE m.queue = ` + queueNumber + ` AND m.id = ANY (ARRAY(
		SELECT id FROM waybill.queue_messages WHERE queue = ` + queueNumber + ` AND cardinality($3::uuid[]) = 0 AND sent_at <= $5 LIMIT $4 FOR UPDATE SKIP LOCKED))
	RETURNING m.id)
SELECT count(*) FROM gone`

// Purge removes every message, also those with workers, whose receipts are then
// no longer good. Dead letters stay.
func (q *Queue) Purge(ctx context.Context) (int64, error) {
	n, err := q.inParts(ctx, purgeSQL, nil)
	if err != nil {
		return n, fmt.Errorf("purge queue %s, %d messages gone: %w", q.cfg.Name, n, err)
	}
	return n, nil
}

// inParts repeats a statement until it finds nothing more: a single one over a
// million rows would hold them all locked, and be undone whole by a failure.
func (q *Queue) inParts(ctx context.Context, sql string, ids []uuid.UUID) (total int64, err error) {
	if err := q.exists(ctx); err != nil {
		return 0, err
	}
	if ids == nil {
		ids = []uuid.UUID{}
	}
	var began time.Time
	if err := q.db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&began); err != nil {
		return 0, err
	}
	for {
		var n int64
		if err := q.db.QueryRow(ctx, sql, q.cfg.Tenant, q.cfg.Name, ids, upkeepBatch, began).Scan(&n); err != nil {
			return total, err
		}
		if total += n; n == 0 {
			return total, nil
		}
	}
}
