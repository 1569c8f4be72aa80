package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// targets reads where lanes lead. Those that are disabled or gone, and those
// whose secrets do not open, are not among them; the error tells of the latter.
func (s *Sender) targets(ctx context.Context, keys []laneKey) (map[laneKey]target, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	tenants, endpoints := split(keys)
	out, closed := map[laneKey]target{}, map[laneKey]error{}
	err := asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT e.tenant, e.id, e.url, e.revision, s.id, s.sealed, s.expires_at
			FROM unnest($1::text[], $2::uuid[]) w (tenant, endpoint)
			JOIN webhook.endpoints e ON e.tenant = w.tenant AND e.id = w.endpoint
			JOIN webhook.secrets s ON s.tenant = e.tenant AND s.endpoint = e.id
			WHERE e.state = 'enabled' AND coalesce(s.expires_at > now(), true) ORDER BY e.tenant, e.id, s.expires_at DESC NULLS FIRST`, tenants, endpoints)
		if err != nil {
			return err
		}
		var k laneKey
		var t target
		var secret uuid.UUID
		var sealed []byte
		var expires *time.Time
		_, err = pgx.ForEachRow(rows, []any{&k.tenant, &k.endpoint, &t.url, &t.revision, &secret, &sealed, &expires}, func() error {
			key, err := s.store.open(sealed, k.tenant, k.endpoint, secret)
			if err != nil {
				closed[k] = err
				return nil //nolint:nilerr // the others may open
			}
			had := out[k]
			had.url, had.revision = t.url, t.revision
			timed := timedKey{Key: key}
			if expires != nil {
				timed.until = *expires
			}
			had.keys = append(had.keys, timed)
			out[k] = had
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read webhook endpoints: %w", err)
	}
	var errs []error
	for k, err := range closed {
		delete(out, k) // to sign with half of its secrets would break it
		if len(errs) == 0 {
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// refreshEvery is how soon a change of an endpoint is followed.
const refreshEvery = time.Second

func (s *Sender) refreshes(ctx context.Context) {
	s.every(ctx, refreshEvery, "changes of webhook endpoints are not followed", s.refresh)
}

// refresh follows what was changed of endpoints, and gives up those that are
// disabled or gone.
func (s *Sender) refresh(ctx context.Context) error {
	s.mu.Lock()
	var keys []laneKey
	for k := range s.lanes {
		keys = append(keys, k)
	}
	s.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	revisions, err := s.revisions(ctx, keys)
	if err != nil {
		return err
	}
	var changed []laneKey
	s.mu.Lock()
	for _, k := range keys {
		if l := s.lanes[k]; l != nil && revisions[k] != l.target.revision {
			changed = append(changed, k)
		}
	}
	s.mu.Unlock()
	targets, err := s.targets(ctx, changed)
	if targets == nil {
		return err
	}
	s.mu.Lock()
	var left []laneKey
	for _, k := range changed {
		l := s.lanes[k]
		if l == nil {
			continue
		}
		t, ok := targets[k]
		if !ok {
			s.drop(l)
			left = append(left, k)
			continue
		}
		l.target = t
		l.health, l.dirty = health{}, true // it is another now, or was mended
		delete(s.resting, l)
		s.rota.ready(l.share)
	}
	owner := s.id
	s.pump(time.Now()) //nolint:contextcheck // calls outlive who begins them
	s.mu.Unlock()
	return errors.Join(err, s.release(ctx, owner, left))
}

func (s *Sender) revisions(ctx context.Context, keys []laneKey) (map[laneKey]int64, error) {
	tenants, endpoints := split(keys)
	out := map[laneKey]int64{}
	err := asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT e.tenant, e.id, e.revision FROM unnest($1::text[], $2::uuid[]) w (tenant, endpoint)
			JOIN webhook.endpoints e ON e.tenant = w.tenant AND e.id = w.endpoint`, tenants, endpoints)
		if err != nil {
			return err
		}
		var k laneKey
		var revision int64
		_, err = pgx.ForEachRow(rows, []any{&k.tenant, &k.endpoint, &revision}, func() error {
			out[k] = revision
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for changes of webhook endpoints: %w", err)
	}
	return out, nil
}
