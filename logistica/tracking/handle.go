package tracking

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// Created notes where an order is collected and received.
func (t *Tracker) Created(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderCreated]) error {
	p, d := e.Data.Pickup, e.Data.Dropoff
	return change(ctx, tx, e.Envelope, e.Data.OrderID, `INSERT INTO tracking.rides AS r
			(order_id, tenant, pickup_lat, pickup_lng, dropoff_lat, dropoff_lng)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (order_id) DO UPDATE SET pickup_lat = excluded.pickup_lat, pickup_lng = excluded.pickup_lng,
			dropoff_lat = excluded.dropoff_lat, dropoff_lng = excluded.dropoff_lng, changed_at = now()`,
		p.Lat, p.Lng, d.Lat, d.Lng)
}

// Assigned notes who rides for an order from now on.
func (t *Tracker) Assigned(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderAssigned]) error {
	return change(ctx, tx, e.Envelope, e.Data.OrderID, `INSERT INTO tracking.rides AS r
			(order_id, tenant, courier_id, assigned_version, assigned_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (order_id) DO UPDATE SET courier_id = excluded.courier_id, assigned_at = excluded.assigned_at,
			assigned_version = excluded.assigned_version, changed_at = now()
		WHERE r.assigned_version < excluded.assigned_version`,
		e.Data.CourierID, e.Data.Version, e.Time)
}

// StatusChanged notes where an order stands, and that nobody rides for it any
// more where that is so.
func (t *Tracker) StatusChanged(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderStatusChanged]) error {
	ended := int64(0)
	if nobodyRides(e.Data.To) {
		ended = e.Data.Version
	}
	return change(ctx, tx, e.Envelope, e.Data.OrderID, `INSERT INTO tracking.rides AS r
			(order_id, tenant, state, state_version, ended_version)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (order_id) DO UPDATE SET
			state = CASE WHEN r.state_version < excluded.state_version THEN excluded.state ELSE r.state END,
			state_version = greatest(r.state_version, excluded.state_version),
			ended_version = greatest(r.ended_version, excluded.ended_version), changed_at = now()`,
		string(e.Data.To), e.Data.Version, ended)
}

// nobodyRides tells whether an order in that state has no courier. A state that
// is newer than this program ends no ride and begins none.
func nobodyRides(s contracts.OrderState) bool {
	switch s {
	case contracts.OrderStateCreated, contracts.OrderStateUnassignable,
		contracts.OrderStateCancelled, contracts.OrderStateDelivered, contracts.OrderStateReturned:
		return true
	case contracts.OrderStateUnknown, contracts.OrderStateAssigning, contracts.OrderStateAssigned,
		contracts.OrderStatePickupOngoing, contracts.OrderStateArrivedAtMerchant, contracts.OrderStatePickedUp,
		contracts.OrderStateDeliveryOngoing, contracts.OrderStateArrivedAtCustomer,
		contracts.OrderStateFailed, contracts.OrderStateReturning:
		return false
	}
	return false
}

// change makes one change to an order's ride, and drops the way that nobody may
// see any more.
func change(ctx context.Context, tx pgx.Tx, env event.Envelope, order uuid.UUID, sql string, args ...any) error {
	tenant, err := uuid.Parse(env.Tenant)
	if err != nil {
		return fmt.Errorf("track order %s: tenant %.64q: %w", order, env.Tenant, err)
	}
	var b pgx.Batch
	b.Queue(`SELECT set_config('waybill.tenant', $1, true)`, tenant.String())
	b.Queue(sql, append([]any{order, tenant}, args...)...)
	b.Queue(`DELETE FROM tracking.trail t USING tracking.rides r
		WHERE t.order_id = $1 AND r.order_id = $1 AND (NOT r.active OR r.courier_id <> t.courier_id)`, order)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("track order %s: %w", order, err)
	}
	return nil
}
