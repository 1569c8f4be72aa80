package couriers

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// search holds the nearest free courier for an order that wants one, or tells
// once that it goes on waiting. It saves r.
func (m *Module) search(ctx context.Context, tx pgx.Tx, r *request) error {
	if r.state != waiting || r.pickup == nil {
		return r.store(ctx, tx)
	}
	c, found, err := m.nearest(ctx, tx, r)
	switch {
	case err != nil:
		return err
	case found:
		return m.hold(ctx, tx, r, &c)
	case r.told:
		return r.store(ctx, tx)
	}
	r.told = true
	return m.sayFailed(ctx, tx, r, contracts.ReservationFailureNoCourier, false)
}

// hold reserves a courier, whose row the transaction holds, for the attempt that
// waits, and saves r.
func (m *Module) hold(ctx context.Context, tx pgx.Tx, r *request, c *candidate) error {
	now := m.clock()
	toPickup, toDropoff := int64(unknownDistance), street(*r.pickup, *r.dropoff)
	if c.at != nil {
		toPickup = street(*c.at, *r.pickup)
	}
	res := reservation{attempt: r.attempt, courier: c.ID, until: now.Add(m.cfg.Hold)}
	r.current, r.state = &res, idle
	var b pgx.Batch
	set(&b, forTenant, r.tenant.String())
	set(&b, forCourier, c.ID.String())
	b.Queue(`INSERT INTO couriers.reservations
		(tenant, order_id, attempt, courier, state, until, to_pickup_m, to_dropoff_m, made_at)
		VALUES ($1, $2, $3, $4, 'RESERVED', $5, $6, $7, $8)`,
		r.tenant, r.order, r.attempt, c.ID, res.until, toPickup, toDropoff, now)
	pickup := now.Add(ride(toPickup))
	err := m.say(ctx, &b, r, func(version int64) event.Data {
		return contracts.CourierReserved{
			OrderID: r.order, Version: version, Attempt: r.attempt, CourierID: c.ID, VehicleType: c.Vehicle,
			ReservedUntil: res.until, PickupETA: pickup, DeliveryETA: pickup.Add(ride(toDropoff)),
			DistanceM: toPickup + toDropoff,
		}
	})
	if err != nil {
		return err
	}
	if err := m.turn(ctx, &b, &c.Courier, Reserved, "", r.order); err != nil {
		return err
	}
	r.save(&b)
	set(&b, forCourier, "")
	return r.send(ctx, tx, &b)
}

// confirm marks the courier who is held as assigned.
func (m *Module) confirm(ctx context.Context, tx pgx.Tx, r *request) error {
	c, err := lockHeld(ctx, tx, r)
	if err != nil {
		return err
	}
	var b pgx.Batch
	b.Queue(`UPDATE couriers.reservations SET state = 'CONFIRMED' WHERE tenant = $1 AND order_id = $2 AND attempt = $3`,
		r.tenant, r.order, r.current.attempt)
	r.current.confirmed = true
	if err := m.turn(ctx, &b, &c, Busy, "", r.order); err != nil {
		return err
	}
	r.save(&b)
	set(&b, forCourier, "")
	return r.send(ctx, tx, &b)
}

// lockHeld locks the courier who is held and makes tx act for them too.
func lockHeld(ctx context.Context, tx pgx.Tx, r *request) (c Courier, err error) {
	var b pgx.Batch
	set(&b, forCourier, r.current.courier.String())
	b.Queue(selectCourier+`WHERE id = $1 FOR NO KEY UPDATE`, r.current.courier).
		QueryRow(func(row pgx.Row) error { return scanCourier(row, &c) })
	err = tx.SendBatch(ctx, &b).Close()
	return c, notFound(err, "lock courier %s", r.current.courier)
}
