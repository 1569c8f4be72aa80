package couriers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// lastKnown is how long a position says where somebody is. Who was not heard of
// since comes after all others.
const lastKnown = 15 * time.Minute

// candidate is a courier whose row is locked, and where they are if that is
// known.
type candidate struct {
	Courier
	at *point
}

// Degrees of longitude are shortened by the latitude, which orders as the
// haversine does over a city and costs a tenth.
const nearestCourier = `SELECT c.id, c.name, c.vehicle_type, c.state, c.version, p.lat, p.lng
	FROM couriers.courier_tenant l
	JOIN couriers.couriers c ON c.id = l.courier
	LEFT JOIN couriers.positions p ON p.courier = c.id AND p.fix_time > $4
	WHERE l.tenant = $1 AND c.state = 'AVAILABLE' AND NOT EXISTS (
		SELECT FROM couriers.reservations r
		WHERE r.tenant = $1 AND r.order_id = $2 AND r.courier = c.id AND r.attempt >= $3)
	ORDER BY (p.lat - $5::float8)^2 + ((p.lng - $6::float8) * cos(radians($5::float8)))^2 NULLS LAST, c.id
	LIMIT 1 FOR NO KEY UPDATE OF c SKIP LOCKED`

// nearest finds the free courier of the tenant's who is nearest to the pickup
// and was not let go of this order before, and locks them. Rows that others have
// locked are passed over: orders that race for couriers do not queue behind one
// another, each takes another one.
func (m *Module) nearest(ctx context.Context, tx pgx.Tx, r *request) (c candidate, found bool, err error) {
	var b pgx.Batch
	set(&b, choosing, "on")
	b.Queue(nearestCourier, r.tenant, r.order, r.fresh, m.clock().Add(-lastKnown), r.pickup.lat, r.pickup.lng).
		QueryRow(func(row pgx.Row) error {
			err := scanCandidate(row, &c)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			found = err == nil
			return err
		})
	set(&b, choosing, "")
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return c, false, fmt.Errorf("choose a courier for order %s: %w", r.order, err)
	}
	return c, found, nil
}

func scanCandidate(row pgx.Row, c *candidate) error {
	var lat, lng *float64
	err := row.Scan(&c.ID, &c.Name, &c.Vehicle, &c.State, &c.Version, &lat, &lng)
	if err == nil && lat != nil {
		c.at = &point{*lat, *lng}
	}
	return err
}

// nextFor is the order that waits longest of those a free courier may have.
const nextFor = `SELECT ` + requestColumns + ` FROM couriers.requests q
	WHERE q.state = 'WAITING' AND q.pickup_lat IS NOT NULL
	AND q.tenant IN (SELECT l.tenant FROM couriers.courier_tenant l WHERE l.courier = $1)
	AND NOT EXISTS (SELECT FROM couriers.reservations r
		WHERE r.tenant = q.tenant AND r.order_id = q.order_id AND r.courier = $1 AND r.attempt >= q.fresh)
	ORDER BY q.since, q.order_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`

// serve gives a courier who has just become free to the order that waits longest
// among those of their merchants. The transaction holds the courier's row; it
// acts for back again afterwards, for nobody if nil.
//
// An order that is locked is passed over, since its holder may be waiting for
// this courier's row. Should it end up waiting, a sweep finds it.
func (m *Module) serve(ctx context.Context, tx pgx.Tx, c *Courier, back uuid.UUID) error {
	var r request
	var at *point
	found := false
	var b pgx.Batch
	set(&b, forCourier, c.ID.String())
	set(&b, serving, "on")
	b.Queue(nextFor, c.ID).QueryRow(func(row pgx.Row) error {
		err := scanRequest(row, &r)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	set(&b, serving, "")
	b.Queue(`SELECT lat, lng FROM couriers.positions WHERE courier = $1 AND fix_time > $2`, c.ID, m.clock().Add(-lastKnown)).
		QueryRow(func(row pgx.Row) error {
			var p point
			err := row.Scan(&p.lat, &p.lng)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			at = &p
			return err
		})
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("look for an order for courier %s: %w", c.ID, err)
	}
	if !found {
		return nil
	}
	held := candidate{*c, at}
	if err := m.hold(ctx, tx, &r, &held); err != nil {
		return err
	}
	*c = held.Courier
	if back == uuid.Nil {
		return nil
	}
	var end pgx.Batch
	set(&end, forTenant, back.String())
	if err := tx.SendBatch(ctx, &end).Close(); err != nil {
		return fmt.Errorf("act for tenant %s again: %w", back, err)
	}
	return nil
}
