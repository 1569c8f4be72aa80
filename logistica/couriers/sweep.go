package couriers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// sweepBatch bounds what one look of a sweep finds. Each is then worked on in a
// transaction of its own, so that none holds another up.
const sweepBatch = 100

// Run asks for what expired, ends searches whose patience is over and serves
// orders that wait though somebody is free, until ctx ends. Several processes may
// run it. A sweep that fails is logged and made up for at the next turn.
func (m *Module) Run(ctx context.Context) error {
	turn := time.NewTicker(m.cfg.Sweep)
	defer turn.Stop()
	quiet := time.NewTimer(m.cfg.Hold) // what was confirmed while nobody listened is heard first
	defer quiet.Stop()
	mayExpire := false
	for {
		if err := m.sweep(ctx, mayExpire); err != nil && ctx.Err() == nil {
			m.cfg.Logger.WarnContext(ctx, "couriers: sweep", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-quiet.C:
			mayExpire = true
		case <-turn.C:
		}
	}
}

func (m *Module) sweep(ctx context.Context, mayExpire bool) error {
	var errs []error
	if mayExpire {
		_, err := m.Expire(ctx)
		errs = append(errs, err)
	}
	_, err := m.GiveUp(ctx)
	errs = append(errs, err)
	_, err = m.ServeWaiting(ctx)
	return errors.Join(append(errs, err)...)
}

// Expire asks for the release of reservations past their deadline that are not
// confirmed, and says how many it went through. Each is asked for again after
// another [Config.Hold], unless it has come to an end by then.
func (m *Module) Expire(ctx context.Context) (int, error) {
	return m.each(ctx, `SELECT tenant, order_id FROM couriers.reservations
		WHERE state = 'RESERVED' AND until < $1 ORDER BY until LIMIT $2`,
		func(ctx context.Context, tx pgx.Tx, r *request) error {
			if c := r.current; c == nil || c.confirmed || !c.until.Before(m.clock()) {
				return nil
			}
			_, err := tx.Exec(ctx, `UPDATE couriers.reservations SET until = $4 WHERE tenant = $1 AND order_id = $2 AND attempt = $3`,
				r.tenant, r.order, r.current.attempt, m.clock().Add(m.cfg.Hold))
			if err != nil {
				return fmt.Errorf("put off the deadline of attempt %d: %w", r.current.attempt, err)
			}
			return m.ask(ctx, tx, r, contracts.ReleaseAskExpired)
		})
}

// GiveUp ends searches that have waited for [Config.Patience].
func (m *Module) GiveUp(ctx context.Context) (int, error) {
	return m.each(ctx, `SELECT tenant, order_id FROM couriers.requests
		WHERE state = 'WAITING' AND gives_up_at < $1 ORDER BY since, order_id LIMIT $2`,
		func(ctx context.Context, tx pgx.Tx, r *request) error {
			if r.state != waiting || !r.givesUp.Before(m.clock()) {
				return nil
			}
			r.state = idle
			return m.sayFailed(ctx, tx, r, contracts.ReservationFailureNoCourier, true)
		})
}

// ServeWaiting holds couriers for orders that wait, oldest first, where one is
// free. It is what finds an order and a courier that missed each other: each was
// locked when the other looked.
func (m *Module) ServeWaiting(ctx context.Context) (int, error) {
	return m.each(ctx, `SELECT q.tenant, q.order_id FROM couriers.requests q
		WHERE q.state = 'WAITING' AND q.pickup_lat IS NOT NULL AND q.gives_up_at >= $1 AND EXISTS (
			SELECT FROM couriers.courier_tenant l JOIN couriers.couriers c ON c.id = l.courier
			WHERE l.tenant = q.tenant AND c.state = 'AVAILABLE' AND NOT EXISTS (
				SELECT FROM couriers.reservations r WHERE r.tenant = q.tenant AND r.order_id = q.order_id
				AND r.courier = c.id AND r.attempt >= q.fresh))
		ORDER BY q.since, q.order_id LIMIT $2`,
		func(ctx context.Context, tx pgx.Tx, r *request) error {
			if r.state != waiting {
				return nil
			}
			return m.search(ctx, tx, r)
		})
}

// each finds orders of all tenants, seen for housekeeping, and works on each in
// its tenant's transaction, behind its lock.
func (m *Module) each(ctx context.Context, find string, work func(context.Context, pgx.Tx, *request) error) (int, error) {
	type key struct{ Tenant, Order uuid.UUID }
	var found []key
	err := pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		set(&b, housekeeping, "on")
		b.Queue(find, m.clock(), sweepBatch).Query(func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[key])
			return err
		})
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return 0, fmt.Errorf("look for orders to go on with: %w", err)
	}
	var errs []error
	for _, k := range found {
		ctx := event.WithTenant(ctx, k.Tenant.String())
		err := pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
			r, err := m.open(ctx, tx, k.Tenant, k.Order)
			if err != nil {
				return err
			}
			return work(ctx, tx, r)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("order %s: %w", k.Order, err))
		}
	}
	return len(found), errors.Join(errs...)
}
