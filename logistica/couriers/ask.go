package couriers

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// Overdue is for an attempt that does not come to an end. On the way back it
// releases the courier who is held; before, it asks orders whether the courier
// may go, who may be out with the order already. One that is confirmed or
// released, or was never held, stays as it is, so that it may be said again. It
// leaves tx acting for tenant.
func (m *Module) Overdue(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID, attempt int32, back bool) error {
	r, err := m.open(ctx, tx, tenant, order)
	if err != nil {
		return err
	}
	switch c := r.current; {
	case c == nil || c.attempt != attempt || c.confirmed:
		return nil
	case back:
		return m.release(ctx, tx, r, contracts.ReleaseReasonExpired)
	}
	return m.ask(ctx, tx, r, contracts.ReleaseAskExpired)
}

// Reassign asks that the courier of a tenant's order is let go, so that another
// is looked for. It is [ErrNoJob] where none is held, and [ErrCarried] once the
// goods are picked up, as far as has been heard: orders knows, and has the last
// word.
func (m *Module) Reassign(ctx context.Context, tenant, order uuid.UUID) error {
	return pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		return m.giveBack(ctx, tx, tenant, order, uuid.Nil, contracts.ReleaseAskReassigned)
	})
}

// Decline asks by its courier's word that an order is given back. It is [ErrNoJob] where the
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
		return m.giveBack(ctx, tx, tenant, order, courier, contracts.ReleaseAskDeclined)
	})
}

// giveBack asks for the release of who holds an order: courier, or anybody if nil.
func (m *Module) giveBack(ctx context.Context, tx pgx.Tx, tenant, order, courier uuid.UUID, why contracts.ReleaseAsk) error {
	r, err := m.open(ctx, tx, tenant, order)
	switch {
	case err != nil:
		return err
	case r.current == nil, courier != uuid.Nil && r.current.courier != courier:
		return ErrNoJob // of an order never heard of, the row is rolled back with it
	case r.carried:
		return ErrCarried
	}
	return m.ask(ctx, tx, r, why)
}

// ask publishes that the courier who is held should be let go, and saves r. Here
// a pickup is heard of late: a courier who was let go at once might have the goods
// by then, and be given another order with this one on the seat. Orders decides
// under its lock, and says so by going on to another attempt, or not at all. What
// a person asked for is said once.
func (m *Module) ask(ctx context.Context, tx pgx.Tx, r *request, why contracts.ReleaseAsk) error {
	held := *r.current
	if held.asked == string(why) && why != contracts.ReleaseAskExpired {
		return nil
	}
	var b pgx.Batch
	b.Queue(`UPDATE couriers.reservations SET asked = $4 WHERE tenant = $1 AND order_id = $2 AND attempt = $3`,
		r.tenant, r.order, held.attempt, string(why))
	err := m.say(ctx, &b, r, func(version int64) event.Data {
		return contracts.CourierReleaseAsked{OrderID: r.order, Version: version, Attempt: held.attempt, CourierID: held.courier, Reason: why}
	})
	if err != nil {
		return err
	}
	r.save(&b)
	return r.send(ctx, tx, &b)
}

// answered is why orders went on without the courier who is held.
func answered(reason *string) contracts.ReleaseReason {
	if reason != nil {
		switch why := contracts.ReleaseReason(*reason); why { //nolint:exhaustive // the others are not asked for
		case contracts.ReleaseReasonDeclined, contracts.ReleaseReasonReassigned, contracts.ReleaseReasonExpired:
			return why
		}
	}
	return contracts.ReleaseReasonOperator
}
