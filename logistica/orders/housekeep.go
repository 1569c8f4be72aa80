package orders

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// KeepKeys is how long an idempotency key is remembered at least. The row-level
// policies of its table hold the same figure: housekeeping sees no younger key.
const KeepKeys = 24 * time.Hour

// sweepBatch bounds how many rows one transaction deletes, and so how long it
// holds their locks.
const sweepBatch = 1000

// offerTurns is how often an offer's time is looked at within it: it lasts longer
// by a tenth at most.
const offerTurns = 10

// Run forgets expired idempotency keys and takes back orders that no courier sets
// out for, until ctx ends. Several processes may run it. A sweep that fails is
// logged and tried again at the next turn.
func (s *Store) Run(ctx context.Context) error {
	offers := make(chan struct{})
	go func() {
		defer close(offers)
		s.watchOffers(ctx)
	}()
	s.forget(ctx)
	<-offers
	return nil
}

func (s *Store) watchOffers(ctx context.Context) {
	if s.offer < 0 {
		return
	}
	turn := time.NewTicker(max(s.offer/offerTurns, time.Millisecond))
	defer turn.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-turn.C:
		}
		if n < offerTurns {
			continue
		}
		if _, err := s.TakeBack(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "orders: take back", "error", err)
		}
	}
}

func (s *Store) forget(ctx context.Context) {
	turn := time.NewTicker(s.sweep)
	defer turn.Stop()
	for {
		if _, err := s.ForgetKeys(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "orders: forget idempotency keys", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-turn.C:
		}
	}
}

// ForgetKeys deletes the idempotency keys of all tenants that are older than
// [KeepKeys] and says how many there were.
func (s *Store) ForgetKeys(ctx context.Context) (forgotten int64, err error) {
	for {
		n, err := s.forgetSome(ctx)
		forgotten += n
		if err != nil {
			return forgotten, fmt.Errorf("forget idempotency keys: %w", err)
		}
		if n < sweepBatch {
			return forgotten, nil
		}
	}
}

func (s *Store) forgetSome(ctx context.Context) (n int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT set_config('waybill.housekeeping', 'on', true)`)
		b.Queue(`DELETE FROM orders.idempotency_keys WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM orders.idempotency_keys WHERE created_at < now() - interval '24 hours'
			ORDER BY created_at LIMIT $1))`, sweepBatch).
			Exec(func(ct pgconn.CommandTag) error { n = ct.RowsAffected(); return nil })
		return tx.SendBatch(ctx, &b).Close()
	})
	return n, err
}
