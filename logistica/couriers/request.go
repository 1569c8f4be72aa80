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

// Where an order's search stands.
const (
	idle    = "IDLE"    // nothing is wanted just now: not yet, or a courier is held
	waiting = "WAITING" // a courier is wanted
	closed  = "CLOSED"  // the order's story has ended; nothing is wanted any more
)

// request is what is known of one order, read under its lock. Handlers change it
// and save it in the same transaction.
type request struct {
	tenant, order   uuid.UUID
	version         int64 // of what was said last
	attempt         int32 // the newest that was asked for, 0 before the first
	state           string
	told            bool   // that the search goes on without a courier
	carried         bool   // the goods are with the courier
	fresh           int32  // couriers who were let go before this attempt may have it again
	pickup, dropoff *point // nil until OrderCreated came
	since           time.Time
	givesUp         time.Time
	current         *reservation // the one that is active, nil if none
}

// reservation is a courier held for an attempt.
type reservation struct {
	attempt   int32
	courier   uuid.UUID
	confirmed bool
	until     time.Time
	asked     string // why orders was asked last to go on without the courier
}

const requestColumns = `tenant, order_id, version, attempt, state, told, carried, fresh,
	pickup_lat, pickup_lng, dropoff_lat, dropoff_lng, since, gives_up_at`

func scanRequest(row pgx.Row, r *request) error {
	var at [4]*float64
	err := row.Scan(&r.tenant, &r.order, &r.version, &r.attempt, &r.state, &r.told, &r.carried, &r.fresh,
		&at[0], &at[1], &at[2], &at[3], &r.since, &r.givesUp)
	if err == nil && at[0] != nil {
		r.pickup, r.dropoff = &point{*at[0], *at[1]}, &point{*at[2], *at[3]}
	}
	return err
}

// open locks what is known of an order, which is nothing at first, and makes tx
// act for its tenant. Whatever changes an order here does so behind this lock.
func (m *Module) open(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID) (*request, error) {
	var r request
	var res reservation
	var b pgx.Batch
	set(&b, forTenant, tenant.String())
	b.Queue(`INSERT INTO couriers.requests (tenant, order_id, since, gives_up_at) VALUES ($1, $2, $3, $3)
		ON CONFLICT DO NOTHING`, tenant, order, m.clock())
	b.Queue(`SELECT `+requestColumns+` FROM couriers.requests WHERE tenant = $1 AND order_id = $2 FOR NO KEY UPDATE`, tenant, order).
		QueryRow(func(row pgx.Row) error { return scanRequest(row, &r) })
	// Read when the lock is held, by a statement of its own: it sees what the
	// holder before us did.
	b.Queue(`SELECT attempt, courier, state = 'CONFIRMED', until, coalesce(asked, '') FROM couriers.reservations
		WHERE tenant = $1 AND order_id = $2 AND state IN ('RESERVED', 'CONFIRMED')`, tenant, order).
		QueryRow(func(row pgx.Row) error {
			err := row.Scan(&res.attempt, &res.courier, &res.confirmed, &res.until, &res.asked)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			r.current = &res
			return err
		})
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("open order %s: %w", order, err)
	}
	return &r, nil
}

// save queues what was changed in r. The transaction acts for r's tenant when
// the batch is sent.
func (r *request) save(b *pgx.Batch) {
	var at [4]*float64
	if r.pickup != nil {
		at = [4]*float64{&r.pickup.lat, &r.pickup.lng, &r.dropoff.lat, &r.dropoff.lng}
	}
	b.Queue(`UPDATE couriers.requests SET version = $3, attempt = $4, state = $5, told = $6, carried = $7, fresh = $8,
		pickup_lat = $9, pickup_lng = $10, dropoff_lat = $11, dropoff_lng = $12, since = $13, gives_up_at = $14
		WHERE tenant = $1 AND order_id = $2`,
		r.tenant, r.order, r.version, r.attempt, r.state, r.told, r.carried, r.fresh,
		at[0], at[1], at[2], at[3], r.since, r.givesUp)
}

// store is save in a round trip of its own.
func (r *request) store(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	r.save(&b)
	return r.send(ctx, tx, &b)
}

func (r *request) send(ctx context.Context, tx pgx.Tx, b *pgx.Batch) error {
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write order %s: %w", r.order, err)
	}
	return nil
}

// say queues an event about the order, made with the next version.
func (m *Module) say(ctx context.Context, b *pgx.Batch, r *request, e func(version int64) event.Data) error {
	r.version++
	return m.outbox.Queue(ofTenant(ctx, r.tenant), b, e(r.version))
}

// sayFailed tells that there is no courier, for good or for now, and saves r.
func (m *Module) sayFailed(ctx context.Context, tx pgx.Tx, r *request, why contracts.ReservationFailure, final bool) error {
	var b pgx.Batch
	err := m.say(ctx, &b, r, func(version int64) event.Data {
		return contracts.CourierReservationFailed{OrderID: r.order, Version: version, Attempt: r.attempt, Reason: why, Final: final}
	})
	if err != nil {
		return err
	}
	r.save(&b)
	return r.send(ctx, tx, &b)
}
