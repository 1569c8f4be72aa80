package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// stirredSQL takes notes of groups in which something happened. $3 passes over
// those seen before; $4 is how many.
const stirredSQL = `
WITH gone AS (
	DELETE FROM waybill.queue_stirred s WHERE s.queue = ` + queueNumber + ` AND s.n = ANY (ARRAY(
		SELECT n FROM waybill.queue_stirred WHERE queue = ` + queueNumber + ` AND n > $3 ORDER BY n LIMIT $4 FOR UPDATE SKIP LOCKED))
	RETURNING s.n, s.group_key)
SELECT coalesce(array_agg(DISTINCT group_key), '{}'), coalesce(max(n), 0) FROM gone`

// headsSQL sets the first message of each group in $3 on its way, if none is.
const headsSQL = `
UPDATE waybill.queue_messages m SET state = CASE WHEN m.due_at > now() THEN 'delayed' ELSE 'ready' END
FROM unnest($3::text[]) AS g (key),
LATERAL (
	SELECT w.id FROM waybill.queue_messages w
	WHERE w.queue = ` + queueNumber + ` AND w.group_key = g.key AND w.state = 'waiting' ORDER BY w.seq LIMIT 1) first
WHERE m.queue = ` + queueNumber + ` AND m.id = first.id AND m.state = 'waiting'
	AND NOT EXISTS (SELECT FROM waybill.queue_messages h
		WHERE h.queue = ` + queueNumber + ` AND h.group_key = g.key AND h.group_key IS NOT NULL AND h.state <> 'waiting')`

// moveGroups lets the next message of each group go that has none on its way.
//
// It alone does so, and one process at a time for a queue, held apart by a lock
// of its transaction: two that looked at a group at once would each see no
// head. Whoever sends or finishes a message only leaves a note, in the same
// transaction, and waits for nobody. A note that is seen comes with the change
// it tells of; one that is not seen yet stays for the next round.
func (q *Queue) moveGroups(ctx context.Context, after int64) (moved int64, err error) {
	var last int64
	var some bool
	err = q.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.queue_stirred WHERE queue = `+queueNumber+` AND n > $3)`,
		q.cfg.Tenant, q.cfg.Name, after).Scan(&some)
	if err != nil || !some {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, q.db, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('waybill queue groups', id))
			FROM waybill.queues WHERE tenant = $1 AND name = $2`, q.cfg.Tenant, q.cfg.Name).Scan(&mine); err != nil || !mine {
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		}
		var groups []string
		if err := tx.QueryRow(ctx, stirredSQL, q.cfg.Tenant, q.cfg.Name, after, upkeepBatch).Scan(&groups, &last); err != nil {
			return err
		}
		if len(groups) == 0 {
			return nil
		}
		// A statement of its own, which sees at least what the notes told of.
		tag, err := tx.Exec(ctx, headsSQL, q.cfg.Tenant, q.cfg.Name, groups)
		moved = tag.RowsAffected()
		return err
	})
	if headTaken(err) {
		return 0, nil // the notes are back; the next round sees what came in between
	}
	if err != nil {
		return 0, fmt.Errorf("move groups of queue %s: %w", q.cfg.Name, err)
	}
	if last > 0 {
		q.mu.Lock()
		q.upkeeps.stirred = last
		q.mu.Unlock()
	}
	return moved, nil
}

// headTaken is the index that keeps two messages of a group from being on their
// way.
func headTaken(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.ConstraintName == "queue_messages_head"
}
