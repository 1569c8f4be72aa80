package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// beats keeps the lease of this sender. What it has is its own as long as that
// holds; no call begins later than a Timeout before it ends, so that the next
// owner does not call beside this one.
func (s *Sender) beats(ctx context.Context) {
	s.every(ctx, max((s.cfg.Lease-s.cfg.Timeout)/5, 10*time.Millisecond), "the lease of the webhook sender is not kept", s.beat)
}

func (s *Sender) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max((s.cfg.Lease-s.cfg.Timeout)/2, 100*time.Millisecond))
	defer cancel()
	began := time.Now()
	s.mu.Lock()
	id, begun := s.id, !s.fence.IsZero()
	s.mu.Unlock()
	var tells int64
	err := asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		// An id that has ended stays ended: others may have seen that it has.
		sql := `UPDATE webhook.senders SET until = now() + $2::interval WHERE id = $1 AND until > now()`
		if !begun {
			sql = `INSERT INTO webhook.senders (id, until) VALUES ($1, now() + $2::interval)
				ON CONFLICT (id) DO UPDATE SET until = excluded.until`
		}
		if !begun && s.cfg.Alone {
			if _, err := tx.Exec(ctx, `DELETE FROM webhook.senders WHERE id <> $1`, id); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, sql, id, s.cfg.Lease)
		tells = tag.RowsAffected()
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM webhook.senders WHERE until < now() - interval '1 day'`)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if tells == 0 {
		s.log.WarnContext(ctx, "the lease of the webhook sender was over; it begins anew")
		s.loseAll()
		return nil
	}
	s.fence = began.Add(s.cfg.Lease - s.cfg.Timeout)
	s.revive(began)
	s.pump(began) //nolint:contextcheck // calls outlive who begins them
	return nil
}

// loseAll forgets every lane. Calls that are under way are noted all the same.
// s.mu is held.
func (s *Sender) loseAll() {
	for _, l := range s.lanes {
		s.drop(l)
	}
	s.id, s.fence = event.NewID(), time.Time{}
}

// drop forgets a lane. s.mu is held.
func (s *Sender) drop(l *lane) {
	l.leaving = true
	s.held -= l.forget()
	s.rota.remove(l)
	delete(s.lanes, l.laneKey)
	delete(s.resting, l)
}

// revive has lanes go on whose breakers have been open for long enough. s.mu is
// held.
func (s *Sender) revive(now time.Time) {
	for l := range s.resting {
		if !now.Before(l.health.openUntil) {
			delete(s.resting, l)
			s.rota.ready(l.share)
			poke(s.kick)
		}
	}
}

// leave ends the lease: others need not wait for it.
func (s *Sender) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s.mu.Lock()
	id := s.id
	s.mu.Unlock()
	if _, err := s.store.db.Exec(ctx, `DELETE FROM webhook.senders WHERE id = $1`, id); err != nil {
		s.log.WarnContext(ctx, "the lease of the webhook sender ends by itself", "error", err)
	}
}

// release gives lanes back. Those that were taken over meanwhile are not touched.
func (s *Sender) release(ctx context.Context, owner uuid.UUID, keys []laneKey) error {
	if len(keys) == 0 {
		return nil
	}
	tenants, endpoints := split(keys)
	return asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE webhook.lanes l SET owner = NULL FROM unnest($1::text[], $2::uuid[]) r (tenant, endpoint)
			WHERE l.tenant = r.tenant AND l.endpoint = r.endpoint AND l.owner = $3`, tenants, endpoints, owner)
		return err
	})
}

func split(keys []laneKey) (tenants []string, endpoints []uuid.UUID) {
	for _, k := range keys {
		tenants, endpoints = append(tenants, k.tenant), append(endpoints, k.endpoint)
	}
	return tenants, endpoints
}
