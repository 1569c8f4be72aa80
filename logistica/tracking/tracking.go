// Package tracking knows where an order's courier is: a read model of the
// positions that couriers' devices send and of the orders' course.
//
// Promise: a position is shown to a merchant, and to whoever holds an order's
// tracking link, only while that order is active with that courier, which the
// database itself holds to. A fix that comes late or twice moves nothing back,
// and events of orders and of couriers may come in any order.
//
// Limits: it lags behind by as much as its consumer does. Of an order's way it
// keeps [TrailLength] fixes, and none once nobody may see them. Places are those
// of events, rounded to about a hundred metres, and an arrival is estimated from
// distances as the crow flies.
package tracking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/pg"
)

// ErrNotFound is an order without a courier whom the caller may see: unknown,
// somebody else's, not assigned, over, or with a courier who was not heard of.
// Compare with errors.Is.
var ErrNotFound = errors.New("no position to be seen")

// Config is what may be set; its zero value works.
type Config struct {
	// Keep is how long a courier's last position and a ride that is over stay,
	// 7 days if zero.
	Keep time.Duration
	// Sweep is the time between two looks for what is older, 10 min if zero.
	Sweep time.Duration
	// Now is the clock, time.Now if nil.
	Now func() time.Time
}

// Tracker is the read model. It is safe for concurrent use.
type Tracker struct {
	pool *pgxpool.Pool
	cfg  Config
}

// New makes the model on a migrated database.
func New(pool *pgxpool.Pool, cfg Config) *Tracker {
	if cfg.Keep == 0 {
		cfg.Keep = 7 * 24 * time.Hour
	}
	if cfg.Sweep == 0 {
		cfg.Sweep = 10 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Tracker{pool: pool, cfg: cfg}
}

// Subscribe has g, of the name tracking, keep the model.
func (t *Tracker) Subscribe(g *consumer.Group) {
	consumer.OnBatch(g, t.Located)
	consumer.On(g, t.Created)
	consumer.On(g, t.Assigned)
	consumer.On(g, t.StatusChanged)
}

// Fix is where a courier was.
type Fix struct {
	Point
	Time time.Time // by the device's clock, or when it was received where that is earlier
	Seq  int64     // of the device
}

// Position is where an order's courier is.
type Position struct {
	Fix
	Courier    uuid.UUID
	SpeedMps   *float32 // metres a second, where the device knows
	HeadingDeg *float32 // degrees clockwise from north, where the device knows
	AccuracyM  *float32 // radius in metres, where the device knows
	// Arrival is when the order is expected at its customer, nil where that
	// cannot be said: on the way back, or where the places are not known yet.
	Arrival *time.Time
}

// Position is where the courier of an order of tenant's is, or [ErrNotFound].
func (t *Tracker) Position(ctx context.Context, tenant, order uuid.UUID) (Position, error) {
	return t.position(ctx, order, func(fn func(pgx.Tx) error) error {
		return pg.InTenant(ctx, t.pool, tenant.String(), fn)
	})
}

// ForOrder is where an order's courier is, for whoever holds the order's
// tracking link, which the caller has checked. [ErrNotFound] as of Position.
func (t *Tracker) ForOrder(ctx context.Context, order uuid.UUID) (Position, error) {
	return t.position(ctx, order, func(fn func(pgx.Tx) error) error {
		return pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT set_config('waybill.tracking_order', $1, true)`, order.String()); err != nil {
				return err
			}
			return fn(tx)
		})
	})
}

const selectPosition = `SELECT p.courier_id, p.at, p.seq, p.lat, p.lng, p.speed_mps, p.heading_deg, p.accuracy_m,
		r.state, r.pickup_lat, r.pickup_lng, r.dropoff_lat, r.dropoff_lng
	FROM tracking.rides r JOIN tracking.positions p ON p.courier_id = r.courier_id
	WHERE r.order_id = $1 AND r.active`

// selectWay takes an order's fixes of its present courier, newest first.
const selectWay = `SELECT t.at, t.seq, t.lat, t.lng
	FROM tracking.trail t JOIN tracking.rides r ON r.order_id = t.order_id AND r.courier_id = t.courier_id
	WHERE t.order_id = $1 AND r.active ORDER BY t.at DESC, t.seq DESC LIMIT $2`

func (t *Tracker) position(ctx context.Context, order uuid.UUID, in func(func(pgx.Tx) error) error) (Position, error) {
	var p Position
	var way []Fix
	var c course
	err := in(func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(selectPosition, order).QueryRow(func(row pgx.Row) error {
			return row.Scan(&p.Courier, &p.Time, &p.Seq, &p.Lat, &p.Lng, &p.SpeedMps, &p.HeadingDeg, &p.AccuracyM,
				&c.state, &c.pickup.lat, &c.pickup.lng, &c.dropoff.lat, &c.dropoff.lng)
		})
		b.Queue(selectWay, order, recentFixes).Query(collect(&way))
		return tx.SendBatch(ctx, &b).Close()
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Position{}, ErrNotFound
	}
	if err != nil {
		return Position{}, fmt.Errorf("read position of order %s: %w", order, err)
	}
	p.Time = p.Time.UTC()
	if left, ok := c.left(p.Point); ok {
		arrival := Arrival(p.Time, left, Pace(way))
		if now := t.cfg.Now(); arrival.Before(now) {
			arrival = now
		}
		arrival = arrival.UTC().Truncate(time.Second)
		p.Arrival = &arrival
	}
	return p, nil
}

// Trail is the way of tenant's order so far with its present courier, oldest
// first and at most [TrailLength] fixes; empty where [Tracker.Position] finds
// nothing.
func (t *Tracker) Trail(ctx context.Context, tenant, order uuid.UUID) (way []Fix, err error) {
	err = pg.InTenant(ctx, t.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT * FROM (`+selectWay+`) w ORDER BY at, seq`, order, TrailLength)
		if err != nil {
			return err
		}
		return collect(&way)(rows)
	})
	if err != nil {
		return nil, fmt.Errorf("read trail of order %s: %w", order, err)
	}
	return way, nil
}

func collect(way *[]Fix) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var f Fix
		_, err := pgx.ForEachRow(rows, []any{&f.Time, &f.Seq, &f.Lat, &f.Lng}, func() error {
			f.Time = f.Time.UTC()
			*way = append(*way, f)
			return nil
		})
		return err
	}
}
