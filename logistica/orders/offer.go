package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/contracts"
)

// offerBatch bounds what one query finds; there are as many as it takes, since a
// look comes only so often. Each order is then worked on in a transaction of its
// own, so that none holds another up.
const offerBatch = 100

// TakeBack takes orders back from couriers who have not set out within
// [Config.Offer] of being given them, and says how many. They look for another
// courier, or are UNASSIGNABLE after the last attempt, for the reason EXPIRED.
// Who sets out at the same moment comes before or after.
func (s *Store) TakeBack(ctx context.Context) (taken int, err error) {
	due := s.clock().Add(-s.offer)
	for {
		found, n, err := s.takeSomeBack(ctx, due)
		taken += n
		if err != nil || found < offerBatch || n == 0 {
			return taken, err
		}
	}
}

// takeSomeBack works on a batch, those that wait for longest.
func (s *Store) takeSomeBack(ctx context.Context, due time.Time) (all, taken int, err error) {
	type key struct{ Tenant, Order uuid.UUID }
	var found []key
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT set_config('waybill.orders_offered', 'on', true)`)
		b.Queue(`SELECT tenant, id FROM orders.orders WHERE state = 'ASSIGNED' AND courier IS NOT NULL AND updated_at < $1
			ORDER BY updated_at LIMIT $2`, due, offerBatch).Query(func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[key])
			return err
		})
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return 0, 0, fmt.Errorf("look for offers that are over: %w", err)
	}
	var errs []error
	for _, k := range found {
		was, err := s.takeBack(ctx, k.Tenant, k.Order, due)
		if err != nil {
			errs = append(errs, fmt.Errorf("take back order %s: %w", k.Order, err))
		}
		if was {
			taken++
		}
	}
	return len(found), taken, errors.Join(errs...)
}

func (s *Store) takeBack(ctx context.Context, tenant, id uuid.UUID, due time.Time) (was bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		o, err := lock(ctx, tx, tenant, id)
		if err != nil || o.State != Assigned || o.Courier == uuid.Nil || !o.UpdatedAt.Before(due) {
			return err // set out, or went another way, since it was found
		}
		was = true
		why := string(contracts.ReleaseReasonExpired)
		return s.follow(withTenant(ctx, tenant), tx, &o, settle(o.State, facts{released: true, reason: why}, o.tries() >= s.attempts))
	})
	return was && err == nil, err
}
