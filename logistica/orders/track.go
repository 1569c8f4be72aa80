package orders

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
)

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{32}$`)

// Track is the public view of the order whose tracking token this is, and
// [ErrNotFound] for any other string.
//
// It runs under the token alone, without a tenant: row-level security shows
// that transaction this one order and nothing else.
func (s *Store) Track(ctx context.Context, token string) (t Tracking, err error) {
	if !tokenForm.MatchString(token) {
		return Tracking{}, ErrNotFound
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`SELECT set_config('waybill.tracking_token', $1, true)`, token)
		b.Queue(`SELECT tenant, id, state, version, items, promised_at, created_at, delivery_code,
				pickup_lat, pickup_lng, dropoff_lat, dropoff_lng
			FROM orders.orders WHERE tracking_token = $1`, token).QueryRow(t.scan)
		b.Queue(`SELECT h.to_state, h.at FROM orders.transitions h
			JOIN orders.orders o ON o.tenant = h.tenant AND o.id = h.order_id
			WHERE o.tracking_token = $1 ORDER BY h.version`, token).Query(t.scanTimeline)
		b.Queue(`SELECT o.courier, coalesce(a.vehicle, ''), a.pickup_eta, a.delivery_eta
			FROM orders.orders o LEFT JOIN orders.assignments a
				ON a.tenant = o.tenant AND a.order_id = o.id AND a.attempt = o.attempt
			WHERE o.tracking_token = $1 AND o.courier IS NOT NULL`, token).Query(t.scanCourier)
		return tx.SendBatch(ctx, &b).Close()
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Tracking{}, ErrNotFound
	}
	if err != nil {
		return Tracking{}, fmt.Errorf("read order by tracking token: %w", err)
	}
	return t, nil
}

func (t *Tracking) scan(row pgx.Row) error {
	var items []Item
	first := Moment{State: Created}
	if err := row.Scan(&t.Tenant, &t.OrderID, &t.State, &t.Version, &items, &t.PromisedAt, &first.At, &t.Code,
		&t.Pickup.Lat, &t.Pickup.Lng, &t.Dropoff.Lat, &t.Dropoff.Lng); err != nil {
		return err
	}
	for _, degrees := range []*float64{&t.Pickup.Lat, &t.Pickup.Lng, &t.Dropoff.Lat, &t.Dropoff.Lng} {
		*degrees = thousandth(*degrees)
	}
	for _, i := range items {
		t.Items = append(t.Items, TrackedItem{Name: i.Name, Quantity: i.Quantity})
	}
	if t.PromisedAt != nil {
		*t.PromisedAt = t.PromisedAt.UTC()
	}
	first.At = first.At.UTC()
	t.Timeline = []Moment{first}
	return nil
}

func (t *Tracking) scanTimeline(rows pgx.Rows) error {
	for rows.Next() {
		var m Moment
		if err := rows.Scan(&m.State, &m.At); err != nil {
			return err
		}
		m.At = m.At.UTC()
		t.Timeline = append(t.Timeline, m)
	}
	return rows.Err()
}

func (t *Tracking) scanCourier(rows pgx.Rows) error {
	for rows.Next() {
		if err := rows.Scan(&t.Courier, &t.Vehicle, &t.PickupETA, &t.DeliveryETA); err != nil {
			return err
		}
		inUTC(t.PickupETA, t.DeliveryETA)
	}
	return rows.Err()
}
