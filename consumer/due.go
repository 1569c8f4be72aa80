package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	dueEvery = 200 * time.Millisecond
	dueMax   = 512 // keys per look; more are found by the next
	// Partitions where nothing is known to be parked are looked at once in so
	// many times: an owner before us may have parked something after we loaded
	// what was there.
	dueElsewhere = 25
	// And so seldom it is checked that each parked key has a head, and each key
	// held back still has something parked.
	mendEvery = 50
)

// parkedKey names a key of a partition.
type parkedKey struct {
	place
	key string
}

func (s *session) watchParked(ctx context.Context) {
	n := 0
	every(ctx, dueEvery, func(ctx context.Context) {
		n++
		ctx, cancel := context.WithTimeout(ctx, flushWithin)
		defer cancel()
		err := s.remind(ctx, n%dueElsewhere == 0)
		if err == nil && n%mendEvery == 0 {
			err = s.mend(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.outage(err)
		}
	})
}

// remind makes lanes due whose parked head may be tried again. Time is the
// database's: whoever sets next_at need not share a clock with us.
func (s *session) remind(ctx context.Context, everywhere bool) error {
	places := s.parkedPlaces(everywhere)
	if len(places) == 0 {
		return nil
	}
	topics, ids := columns(places)
	keys, err := s.keys(ctx, `SELECT topic, partition, key FROM waybill.parked
		WHERE group_name = $1 AND state IN ('retrying', 'redrive') AND next_at <= now() AND (`+triedSQL+`)
			AND (topic, partition) IN (SELECT * FROM unnest($2::text[], $3::int[]))
		ORDER BY next_at LIMIT $4`, s.cfg.Group, topics, ids, dueMax)
	if err != nil {
		return fmt.Errorf("look for parked events that are due: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		p := s.parts[k.place]
		if p == nil || p.stopping {
			continue
		}
		// A key that was parked by another hand is parked all the same.
		p.parked[k.key] = struct{}{}
		l := p.lane(k.key)
		l.due = true
		s.wake(l)
	}
	return nil
}

// mend finds what other hands did to the parked table: a person's, or those of
// an owner before us that had not noticed its end. A head they took away has a
// successor, and a key they emptied is free; its lane finds that out.
func (s *session) mend(ctx context.Context) error {
	places := s.parkedPlaces(true)
	if len(places) == 0 {
		return nil
	}
	keys, err := s.loadParked(ctx, places)
	if err != nil {
		return err
	}
	there := make(map[parkedKey]bool, len(keys))
	for _, k := range keys {
		there[k] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		for key := range p.parked {
			if !p.stopping && !there[parkedKey{p.place, key}] {
				l := p.lane(key)
				l.due = true
				s.wake(l)
			}
		}
	}
	return nil
}

// parkedPlaces are the partitions with anything parked, or all.
func (s *session) parkedPlaces(all bool) []place {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []place
	for at, p := range s.parts {
		if (all || len(p.parked) > 0) && !p.stopping {
			out = append(out, at)
		}
	}
	return out
}

// loadParked finds the parked keys of partitions. A key whose head is not
// marked as such is mended.
func (s *session) loadParked(ctx context.Context, places []place) ([]parkedKey, error) {
	topics, ids := columns(places)
	keys, err := s.keys(ctx, `SELECT DISTINCT topic, partition, key FROM waybill.parked
		WHERE group_name = $1 AND (topic, partition) IN (SELECT * FROM unnest($2::text[], $3::int[]))`,
		s.cfg.Group, topics, ids)
	if err != nil {
		return nil, fmt.Errorf("load parked keys: %w", err)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	_, err = s.deps.DB.Exec(ctx, `UPDATE waybill.parked SET state = 'retrying', next_at = now()
		WHERE state = 'waiting' AND seq IN (
			SELECT min(seq) FROM waybill.parked
			WHERE group_name = $1 AND (topic, partition) IN (SELECT * FROM unnest($2::text[], $3::int[]))
			GROUP BY topic, partition, key)`, s.cfg.Group, topics, ids)
	if err != nil {
		return nil, fmt.Errorf("mend heads of parked keys: %w", err)
	}
	if s.cfg.Gaps.holds() {
		if _, err := s.deps.DB.Exec(ctx, fillersSQL, s.cfg.Group, topics, ids); err != nil {
			return nil, fmt.Errorf("have events tried that others wait for: %w", err)
		}
	}
	return keys, nil
}

func (s *session) keys(ctx context.Context, sql string, args ...any) ([]parkedKey, error) {
	rows, err := s.deps.DB.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (k parkedKey, err error) {
		var key []byte
		err = row.Scan(&k.topic, &k.id, &key)
		k.key = string(key)
		return k, err
	})
}

func columns(places []place) (topics []string, ids []int32) {
	for _, at := range places {
		topics, ids = append(topics, at.topic), append(ids, at.id)
	}
	return topics, ids
}
