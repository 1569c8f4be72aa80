package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Bounds of one claim.
const (
	claimLanes  = 500
	claimBodies = 100 // read at a time, so that little is held past the bound
)

// ask is how much to read of a lane, beside what is in memory already.
type ask struct {
	*lane
	n int
}

// row is a line of webhook.due.
type row struct {
	lane *lane
	job  *job
}

// lateKey names a job that was let go.
type lateKey struct {
	lane *lane
	id   uuid.UUID
}

// claim reads what hungry lanes are to send. Nothing is written: the lane is this
// sender's, and what it has in memory is passed over, as is what was noted since
// the claim began, of which it may read how it was before.
func (s *Sender) claim(ctx context.Context) (more bool, err error) {
	asks := s.asks()
	if len(asks) == 0 {
		return false, nil
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = nil
	}()
	err = asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		rows, err := readDue(ctx, tx, asks)
		if err != nil {
			return err
		}
		jobs := s.news(asks, rows)
		for len(jobs) > 0 {
			n := min(len(jobs), claimBodies)
			bodies, err := readBodies(ctx, tx, jobs[:n])
			if err != nil {
				s.unclaim(jobs)
				return err
			}
			full := s.enqueue(jobs[:n], bodies) //nolint:contextcheck // calls outlive who begins them
			if jobs = jobs[n:]; full {
				s.unclaim(jobs)
				break
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("claim webhooks: %w", err)
	}
	return len(asks) == claimLanes, nil
}

func (s *Sender) asks() (asks []ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.held >= s.cfg.MaxHeld || !now.Before(s.fence) {
		return nil
	}
	for _, l := range s.lanes {
		if len(asks) < claimLanes && l.hungry(now) {
			asks = append(asks, ask{l, l.wanted() + len(l.held)})
		}
	}
	s.late = map[lateKey]bool{}
	return asks
}

// readDue takes of each key only what is first, whatever its turn is: what comes
// later waits for it.
func readDue(ctx context.Context, tx pgx.Tx, asks []ask) ([]row, error) {
	const columns = `event_id, fresh, attempts, begun_at, key IS NOT NULL AS keyed`
	const first = `(d.key IS NULL OR NOT EXISTS (SELECT FROM webhook.due b
		WHERE b.tenant = d.tenant AND b.endpoint = d.endpoint AND b.key = d.key AND b.seq < d.seq))`
	var tenants []string
	var endpoints []uuid.UUID
	var ns []int
	for _, a := range asks {
		tenants, endpoints, ns = append(tenants, a.tenant), append(endpoints, a.endpoint), append(ns, a.n)
	}
	rows, err := tx.Query(ctx, `SELECT l.i, d.* FROM unnest($1::text[], $2::uuid[], $3::int[]) WITH ORDINALITY l (tenant, endpoint, n, i)
		CROSS JOIN LATERAL (
			(SELECT `+columns+` FROM webhook.due d WHERE d.tenant = l.tenant AND d.endpoint = l.endpoint AND d.fresh AND `+first+` ORDER BY d.seq LIMIT l.n)
			UNION ALL
			(SELECT `+columns+` FROM webhook.due d WHERE d.tenant = l.tenant AND d.endpoint = l.endpoint AND NOT d.fresh AND d.next_at <= now() AND `+first+`
				ORDER BY d.next_at LIMIT l.n)) d`, tenants, endpoints, ns)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (row, error) {
		var i int
		j := &job{}
		err := r.Scan(&i, &j.id, &j.fresh, &j.attempts, &j.begun, &j.keyed)
		if err != nil {
			return row{}, err
		}
		j.lane = asks[i-1].lane
		return row{j.lane, j}, nil
	})
}

// news are the jobs that were not in memory, marked as held.
func (s *Sender) news(asks []ask, rows []row) (jobs []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	got, taken := map[*lane][2]int{}, map[*lane]int{}
	now := time.Now()
	for _, r := range rows {
		n := got[r.lane]
		n[kind(r.job)]++
		got[r.lane] = n
		if r.lane.leaving || r.lane.held[r.job.id] || s.late[lateKey{r.lane, r.job.id}] || taken[r.lane] >= 2*r.lane.wanted() {
			continue
		}
		taken[r.lane]++
		r.lane.held[r.job.id] = true
		r.lane.usedAt = now
		jobs = append(jobs, r.job)
	}
	for _, a := range asks {
		n := got[a.lane]
		a.more = n[0] >= a.n || n[1] >= a.n
	}
	return jobs
}

func kind(j *job) int {
	if j.fresh {
		return 0
	}
	return 1
}

type body struct {
	contentType string
	bytes       []byte
}

type bodyKey struct {
	tenant string
	id     uuid.UUID
}

// readBodies reads each event once, for however many endpoints it is.
func readBodies(ctx context.Context, tx pgx.Tx, jobs []*job) (map[bodyKey]body, error) {
	out := map[bodyKey]body{}
	var tenants []string
	var ids []uuid.UUID
	for _, j := range jobs {
		k := bodyKey{j.lane.tenant, j.id}
		if _, ok := out[k]; !ok {
			out[k] = body{}
			tenants, ids = append(tenants, k.tenant), append(ids, k.id)
		}
	}
	rows, err := tx.Query(ctx, `SELECT m.tenant, m.event_id, m.content_type, m.body FROM unnest($1::text[], $2::uuid[]) w (tenant, event_id)
		JOIN webhook.messages m ON m.tenant = w.tenant AND m.event_id = w.event_id`, tenants, ids)
	if err != nil {
		return nil, err
	}
	var k bodyKey
	var b body
	_, err = pgx.ForEachRow(rows, []any{&k.tenant, &k.id, &b.contentType, &b.bytes}, func() error {
		out[k] = b
		b.bytes = nil // the next row must not be read over it
		return nil
	})
	return out, err
}

// enqueue gives jobs their bodies, and tells whether that is all that may be held.
func (s *Sender) enqueue(jobs []*job, bodies map[bodyKey]body) (full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, j := range jobs {
		l := j.lane
		b := bodies[bodyKey{l.tenant, j.id}]
		if l.leaving || !l.held[j.id] || now.Before(l.health.openUntil) {
			delete(l.held, j.id)
			l.more = true
			continue
		}
		if b.bytes == nil && s.missingOnce(j) {
			delete(l.held, j.id)
			continue
		}
		if b.bytes == nil {
			s.results = append(s.results, result{job: j, state: Failed, attempt: Attempt{At: now.UTC(), Error: "the event is no longer kept"}})
			poke(s.record)
			continue
		}
		j.contentType, j.body = b.contentType, b.bytes
		s.held += len(j.body)
		if j.fresh {
			l.fresh = append(l.fresh, j)
		} else {
			l.again = append(l.again, j)
		}
		s.rota.ready(l.share)
	}
	s.pump(now)
	return s.held >= s.cfg.MaxHeld
}

// missingOnce is true if an event is missed for the first time: while a day's
// partition is made, what moves into it is not to be seen for a moment. s.mu is
// held.
func (s *Sender) missingOnce(j *job) bool {
	k := lateKey{j.lane, j.id}
	if s.missing[k] {
		delete(s.missing, k)
		return false
	}
	if len(s.missing) >= mostMissing {
		clear(s.missing)
	}
	s.missing[k] = true
	return true
}

// mostMissing bounds what is remembered of missing events.
const mostMissing = 10_000

// unclaim lets go of jobs that did not come to have a body: they stay in the
// table.
func (s *Sender) unclaim(jobs []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		delete(j.lane.held, j.id)
		j.lane.more = true
	}
}
