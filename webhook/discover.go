package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// spot is an endpoint with something to send, as the table shows it.
type spot struct {
	laneKey
	enabled bool
	owner   *uuid.UUID
	free    bool // nobody who lives has it
}

// busySQL goes from endpoint to endpoint through an index, so that it costs as
// many looks as there are endpoints with something to send, however much it is.
func busySQL(fresh bool) string {
	which, order := "fresh", "seq"
	if !fresh {
		which, order = "NOT fresh", "next_at"
	}
	first := `SELECT tenant, endpoint, next_at FROM webhook.due WHERE ` + which
	by := ` ORDER BY tenant, endpoint, ` + order + ` LIMIT 1`
	return `WITH RECURSIVE busy AS (
			(` + first + by + `)
			UNION ALL
			SELECT n.* FROM busy b CROSS JOIN LATERAL (` + first + ` AND (tenant, endpoint) > (b.tenant, b.endpoint)` + by + `) n)
		SELECT b.tenant, b.endpoint, coalesce(e.state = 'enabled', false), l.owner, l.owner IS NULL OR s.id IS NULL
		FROM busy b
		LEFT JOIN webhook.endpoints e ON e.tenant = b.tenant AND e.id = b.endpoint
		LEFT JOIN webhook.lanes l ON l.tenant = b.tenant AND l.endpoint = b.endpoint
		LEFT JOIN webhook.senders s ON s.id = l.owner AND s.until > now()
		WHERE b.next_at <= now()`
}

// discover looks for endpoints with something to send, and takes those that
// nobody has; each sender its share of them.
func (s *Sender) discover(ctx context.Context, fresh bool) error {
	var found []spot
	crowd := crowd{}
	err := asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		if !fresh { // now and then is enough
			if err := tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM webhook.senders WHERE until > now()),
				(SELECT count(*) FROM webhook.lanes l JOIN webhook.senders s ON s.id = l.owner AND s.until > now())`).Scan(&crowd.senders, &crowd.lanes); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, busySQL(fresh))
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p spot, err error) {
			return p, row.Scan(&p.tenant, &p.endpoint, &p.enabled, &p.owner, &p.free)
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("look for webhooks to send: %w", err)
	}
	owner, wanted, dead := s.sort(found, crowd)
	return errors.Join(s.acquire(ctx, owner, wanted), s.abandon(ctx, dead))
}

// crowd is how many endpoints are shared by how many senders.
type crowd struct{ senders, lanes int }

// most is how many of them one sender should have.
func (c crowd) most(more, limit int) int {
	if c.senders <= 1 {
		return limit
	}
	return min((c.lanes+more+c.senders-1)/c.senders, limit)
}

// sort tells its own lanes that there may be more, and gives the endpoints to be
// taken, and those that nobody is to call any more.
func (s *Sender) sort(found []spot, c crowd) (owner uuid.UUID, wanted []spot, dead []laneKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.senders > 0 {
		s.crowd = c
	}
	now := time.Now()
	for _, p := range found {
		l := s.lanes[p.laneKey]
		switch {
		case !p.enabled:
			dead = append(dead, p.laneKey)
		case l != nil:
			l.more, l.usedAt = true, now
		case p.free:
			wanted = append(wanted, p)
		}
	}
	if s.fence.IsZero() || s.closing {
		return s.id, nil, dead
	}
	most := s.crowd.most(len(wanted), s.cfg.MaxLanes)
	s.shed(len(s.lanes) - most - 1)
	return s.id, wanted[:min(len(wanted), max(most-len(s.lanes), 0))], dead
}

// shed gives lanes to the others, of which this sender has too many. One too many
// is not worth it. s.mu is held.
func (s *Sender) shed(n int) {
	for _, l := range s.lanes {
		if n <= 0 {
			return
		}
		if !l.leaving {
			l.leaving = true
			s.held -= l.forget()
		}
		n--
	}
}

// acquire takes endpoints whose owner is still who was seen. To look at once
// whether that one lives would not do: what is seen of senders may be older than
// what is seen of the row.
func (s *Sender) acquire(ctx context.Context, owner uuid.UUID, wanted []spot) error {
	if len(wanted) == 0 {
		return nil
	}
	var tenants []string
	var endpoints []uuid.UUID
	var seen []*uuid.UUID
	for _, p := range wanted {
		tenants, endpoints, seen = append(tenants, p.tenant), append(endpoints, p.endpoint), append(seen, p.owner)
	}
	var lanes []*lane
	err := asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `INSERT INTO webhook.lanes AS l (tenant, endpoint, owner)
			SELECT w.tenant, w.endpoint, $1 FROM unnest($2::text[], $3::uuid[]) w (tenant, endpoint) ORDER BY 1, 2
			ON CONFLICT (tenant, endpoint) DO UPDATE SET owner = $1 WHERE l.owner IS NOT DISTINCT FROM
				(SELECT seen FROM unnest($2::text[], $3::uuid[], $4::uuid[]) s (tenant, endpoint, seen) WHERE s.tenant = l.tenant AND s.endpoint = l.endpoint)
			RETURNING tenant, endpoint, failures, failing_since, open_until,
				coalesce((SELECT e.is_full FROM webhook.endpoints e WHERE e.tenant = l.tenant AND e.id = l.endpoint), false)`, owner, tenants, endpoints, seen)
		if err != nil {
			return err
		}
		lanes, err = pgx.CollectRows(rows, s.scanLane)
		return err
	})
	if err != nil {
		return fmt.Errorf("take webhook endpoints: %w", err)
	}
	return s.take(ctx, owner, lanes)
}

func (s *Sender) scanLane(row pgx.CollectableRow) (*lane, error) {
	l := &lane{pace: newPace(s.cfg.MaxPerEndpoint), held: map[uuid.UUID]bool{}, more: true, usedAt: time.Now()}
	var since, until *time.Time
	if err := row.Scan(&l.tenant, &l.endpoint, &l.health.failures, &since, &until, &l.full); err != nil {
		return nil, err
	}
	if since != nil {
		l.health.failingSince = *since
	}
	if until != nil {
		l.health.openUntil = *until
	}
	return l, nil
}

// take begins with lanes that were acquired, as far as they can be called.
func (s *Sender) take(ctx context.Context, owner uuid.UUID, lanes []*lane) error {
	var keys, left []laneKey
	for _, l := range lanes {
		keys = append(keys, l.laneKey)
	}
	targets, err := s.targets(ctx, keys)
	s.mu.Lock()
	now := time.Now()
	for _, l := range lanes {
		t, ok := targets[l.laneKey]
		if !ok || s.id != owner || s.lanes[l.laneKey] != nil {
			left = append(left, l.laneKey)
			continue
		}
		l.target = t
		s.lanes[l.laneKey] = l
		s.rota.add(l)
		if now.Before(l.health.openUntil) {
			s.resting[l] = true
		}
	}
	s.mu.Unlock()
	return errors.Join(err, s.release(ctx, owner, left))
}
