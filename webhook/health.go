package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// healths is how lanes are, to be noted: another sender that takes them over does
// not begin by trusting what was broken.
type healths struct {
	owner     uuid.UUID
	lanes     []*lane
	tenants   []string
	endpoints []uuid.UUID
	failures  []int
	since     []*time.Time
	until     []*time.Time
}

// dirty takes what has changed.
func (s *Sender) dirty() *healths {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &healths{owner: s.id}
	for _, l := range s.lanes {
		if !l.dirty {
			continue
		}
		l.dirty = false
		h.lanes = append(h.lanes, l)
		h.tenants, h.endpoints = append(h.tenants, l.tenant), append(h.endpoints, l.endpoint)
		h.failures = append(h.failures, l.health.failures)
		h.since, h.until = append(h.since, orNull(l.health.failingSince)), append(h.until, orNull(l.health.openUntil))
	}
	return h
}

// noteHealth notes how lanes are of which no call is to be noted.
func (s *Sender) noteHealth(ctx context.Context) error {
	h := s.dirty()
	err := asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		h.queue(b)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		s.stillDirty(h)
		return fmt.Errorf("note how webhook endpoints are: %w", err)
	}
	return nil
}

func (s *Sender) stillDirty(h *healths) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range h.lanes {
		l.dirty = true
	}
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (h *healths) queue(b *pgx.Batch) {
	if len(h.lanes) == 0 {
		return
	}
	b.Queue(`UPDATE webhook.lanes l SET failures = r.failures, failing_since = r.since, open_until = r.until
		FROM unnest($1::text[], $2::uuid[], $3::int[], $4::timestamptz[], $5::timestamptz[]) r (tenant, endpoint, failures, since, until)
		WHERE l.tenant = r.tenant AND l.endpoint = r.endpoint AND l.owner = $6`,
		h.tenants, h.endpoints, h.failures, h.since, h.until, h.owner)
}
