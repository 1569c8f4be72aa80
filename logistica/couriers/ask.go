package couriers

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/contracts"
)

// Overdue releases, in tx, the courier who is held for an attempt that does not
// come to an end. One that is confirmed or released, or was never held, stays as
// it is, so that it may be said again. It leaves tx acting for tenant.
func (m *Module) Overdue(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID, attempt int32) error {
	r, err := m.open(ctx, tx, tenant, order)
	if err != nil {
		return err
	}
	if c := r.current; c == nil || c.attempt != attempt || c.confirmed {
		return nil
	}
	return m.release(ctx, tx, r, contracts.ReleaseReasonExpired)
}

// Reassign releases the courier of a tenant's order so that another is looked
// for. It is [ErrNoJob] where none is held, and [ErrCarried] once the goods are
// picked up, as far as has been heard: ask orders first.
func (m *Module) Reassign(ctx context.Context, tenant, order uuid.UUID) error {
	return pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		return m.giveBack(ctx, tx, tenant, order, uuid.Nil, contracts.ReleaseReasonReassigned)
	})
}

// Decline gives an order back by its courier's word. It is [ErrNoJob] where the
// order is not theirs, whoever else's it is, and [ErrCarried] once the goods are
// picked up. The reason is for the courier's own client; what is published is
// that they declined, since their words may name the customer.
func (m *Module) Decline(ctx context.Context, courier, order uuid.UUID, _ string) error {
	return m.asCourier(ctx, courier, func(tx pgx.Tx) error {
		var tenant uuid.UUID
		err := tx.QueryRow(ctx, `SELECT tenant FROM couriers.reservations
			WHERE courier = $1 AND order_id = $2 AND state IN ('RESERVED', 'CONFIRMED')`, courier, order).Scan(&tenant)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoJob
		}
		if err != nil {
			return fmt.Errorf("find order %s of courier %s: %w", order, courier, err)
		}
		return m.giveBack(ctx, tx, tenant, order, courier, contracts.ReleaseReasonDeclined)
	})
}

// giveBack releases who holds an order: courier, or anybody if nil.
func (m *Module) giveBack(ctx context.Context, tx pgx.Tx, tenant, order, courier uuid.UUID, why contracts.ReleaseReason) error {
	r, err := m.open(ctx, tx, tenant, order)
	switch {
	case err != nil:
		return err
	case r.current == nil, courier != uuid.Nil && r.current.courier != courier:
		return ErrNoJob // of an order never heard of, the row is rolled back with it
	case r.carried:
		return ErrCarried
	}
	return m.release(ctx, tx, r, why)
}
