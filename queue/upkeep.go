package queue

import (
	"context"
	"fmt"
	"time"
)

// upkeeps are what whoever receives does for the queue on the way: no process
// of its own is needed for leases to end. Each kind has two paces: a near look,
// at what is recent, and a full one. While an old transaction keeps vacuum from
// its work the full ones become expensive and rare, and what waits for them is
// late; the near ones stay cheap.
type upkeeps struct {
	near, due, groups, expired pace
	stirred                    int64 // groups up to here were seen to
}

const (
	upkeepEvery  = 200 * time.Millisecond // on a queue that always has messages
	upkeepIdle   = 5 * time.Millisecond   // for one who finds none
	expiredEvery = time.Second
	upkeepBatch  = MaxBatch
	// nearPast is how far back the near look goes for leases that ended.
	nearPast = 10 * time.Second
)

// upkeep returns messages whose lease or delay is over, lets groups move on and
// drops what has expired. It tells whether there may be more to receive.
func (q *Queue) upkeep(ctx context.Context, idle bool) (moved bool, err error) {
	every, full := upkeepEvery, fullEvery
	if idle {
		every, full = upkeepIdle, upkeepIdle
	}
	now := time.Now()
	q.mu.Lock()
	u := &q.upkeeps
	near, due, groups, expired := u.near.may(every), u.due.may(full), u.groups.may(full), u.expired.may(expiredEvery)
	stirred := u.stirred
	if near { // at once: whoever comes meanwhile need not do the same
		u.near.last = now
	}
	q.mu.Unlock()
	if !near {
		return false, nil
	}
	if expired {
		if err := q.paced(&u.expired, func() (int64, error) { return q.expire(ctx) }, &moved); err != nil {
			return moved, err
		}
	}
	from, pace := nearPast, &u.near
	if due {
		from, pace = 0, &u.due
	}
	if err := q.paced(pace, func() (int64, error) { return q.returnDue(ctx, from) }, &moved); err != nil {
		return moved, err
	}
	pace = &u.near
	if groups {
		stirred, pace = 0, &u.groups
	}
	return moved, q.paced(pace, func() (int64, error) { return q.moveGroups(ctx, stirred) }, &moved)
}

// paced does a piece of upkeep, notes what it took and whether it did anything.
func (q *Queue) paced(p *pace, do func() (int64, error), moved *bool) error {
	began := time.Now()
	n, err := do()
	q.mu.Lock()
	defer q.mu.Unlock()
	p.spent(began)
	*moved = *moved || n > 0
	return err
}

// dueSQL: $3 is how far back to look in milliseconds, 0 for all; $4 how many;
// $5 what is kept as the reason of one that is dead.
const dueSQL = `
WITH taken AS MATERIALIZED (
	SELECT m.queue, m.id, m.state, m.deliveries FROM waybill.queue_messages m
	WHERE m.queue = ` + queueNumber + ` AND m.state IN ('leased', 'delayed') AND m.due_at <= now()
		AND m.due_at > CASE WHEN $3::bigint = 0 THEN '-infinity' ELSE now() - $3::bigint * interval '1 ms' END
	ORDER BY m.due_at LIMIT $4 FOR UPDATE SKIP LOCKED),` + buried + `,
back AS (
	UPDATE waybill.queue_messages m SET state = 'ready', receipt = NULL
	FROM taken t, waybill.queues q
	WHERE q.id = t.queue AND m.queue = t.queue AND m.id = t.id AND (t.state = 'delayed' OR t.deliveries < q.max_deliveries))
SELECT count(*) FROM taken`

const leaseEnded = "the lease ended without an answer"

// returnDue makes messages ready whose delay is over, or whose worker's lease
// is: it may have died, and if it has not its receipt is no longer good.
func (q *Queue) returnDue(ctx context.Context, back time.Duration) (n int64, err error) {
	err = q.db.QueryRow(ctx, dueSQL, q.cfg.Tenant, q.cfg.Name, back.Milliseconds(), upkeepBatch, leaseEnded).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("end leases of queue %s: %w", q.cfg.Name, err)
	}
	return n, nil
}

const expireSQL = `
WITH gone AS (
	DELETE FROM waybill.queue_messages m WHERE m.queue = ` + queueNumber + ` AND m.id = ANY (ARRAY(
		SELECT e.id FROM waybill.queue_messages e WHERE e.queue = ` + queueNumber + ` AND e.expires_at <= now() AND e.state <> 'leased'
		ORDER BY e.expires_at LIMIT $3 FOR UPDATE SKIP LOCKED))
	RETURNING m.queue, m.group_key),
stir AS (INSERT INTO waybill.queue_stirred (queue, group_key) SELECT DISTINCT queue, group_key FROM gone WHERE group_key IS NOT NULL)
SELECT count(*) FROM gone`

// expire drops what has waited longer than it may. One that is with a worker is
// the worker's.
func (q *Queue) expire(ctx context.Context) (n int64, err error) {
	err = q.db.QueryRow(ctx, expireSQL, q.cfg.Tenant, q.cfg.Name, upkeepBatch).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("drop expired messages of queue %s: %w", q.cfg.Name, err)
	}
	return n, nil
}
