package couriers

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// release lets go of the courier who is held and says why, and saves r. The
// courier is free then, and given to whoever waits longest.
func (m *Module) release(ctx context.Context, tx pgx.Tx, r *request, why contracts.ReleaseReason) error {
	held := *r.current
	var b pgx.Batch
	b.Queue(`UPDATE couriers.reservations SET state = 'RELEASED', reason = $4, ended_at = $5
		WHERE tenant = $1 AND order_id = $2 AND attempt = $3`, r.tenant, r.order, held.attempt, string(why), m.clock())
	if err := m.sayReleased(ctx, &b, r, held.attempt, held.courier, why); err != nil {
		return err
	}
	return m.free(ctx, tx, r, &b, string(why))
}

func (m *Module) sayReleased(ctx context.Context, b *pgx.Batch, r *request, attempt int32, courier uuid.UUID, why contracts.ReleaseReason) error {
	return m.say(ctx, b, r, func(version int64) event.Data {
		return contracts.CourierReleased{OrderID: r.order, Version: version, Attempt: attempt, CourierID: courier, Reason: why}
	})
}

// finish ends what was held for an order that is done. Nothing is said of the
// order: nothing of it is undone.
func (m *Module) finish(ctx context.Context, tx pgx.Tx, r *request) error {
	var b pgx.Batch
	b.Queue(`UPDATE couriers.reservations SET state = 'DONE', ended_at = $4
		WHERE tenant = $1 AND order_id = $2 AND attempt = $3`, r.tenant, r.order, r.current.attempt, m.clock())
	return m.free(ctx, tx, r, &b, "")
}

// free sends b, by which what was held has ended, with the courier's freedom.
func (m *Module) free(ctx context.Context, tx pgx.Tx, r *request, b *pgx.Batch, reason string) error {
	c, err := lockHeld(ctx, tx, r)
	if err != nil {
		return err
	}
	if err := m.turn(ctx, b, &c, Available, reason, r.order); err != nil {
		return err
	}
	r.current = nil
	r.save(b)
	if err := r.send(ctx, tx, b); err != nil {
		return err
	}
	if err := m.serve(ctx, tx, &c, r.tenant); err != nil {
		return err
	}
	var end pgx.Batch
	set(&end, forCourier, "")
	return r.send(ctx, tx, &end)
}

// bar notes the end of an attempt of which no reservation is known, so that one
// that is asked for late is not held, and says so: somebody acts on it. An
// attempt that is known has had its end, and nothing happens.
func (m *Module) bar(ctx context.Context, tx pgx.Tx, r *request, attempt int32, courier uuid.UUID, why contracts.ReleaseReason) error {
	now, first := m.clock(), false
	var b pgx.Batch
	b.Queue(`INSERT INTO couriers.reservations
		(tenant, order_id, attempt, courier, state, reason, until, to_pickup_m, to_dropoff_m, made_at, ended_at)
		VALUES ($1, $2, $3, $4, 'RELEASED', $5, $6, 0, 0, $6, $6) ON CONFLICT DO NOTHING`,
		r.tenant, r.order, attempt, courier, string(why), now).
		Exec(func(ct pgconn.CommandTag) error { first = ct.RowsAffected() == 1; return nil })
	if err := r.send(ctx, tx, &b); err != nil || !first {
		return err
	}
	if r.state == waiting && r.attempt == attempt {
		r.state = idle
	}
	var said pgx.Batch
	if err := m.sayReleased(ctx, &said, r, attempt, courier, why); err != nil {
		return err
	}
	r.save(&said)
	return r.send(ctx, tx, &said)
}
