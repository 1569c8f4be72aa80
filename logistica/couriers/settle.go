package couriers

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/contracts"
)

// want asks for a courier for an attempt. One that is known already, or older
// than one that is, changes nothing; nor does one whose end came first.
//
// Orders goes on without a courier who is still held where it was asked to, which
// why says, and who is let go then.
func (m *Module) want(ctx context.Context, tx pgx.Tx, r *request, attempt int32, why contracts.ReleaseReason) error {
	if r.state == closed {
		return nil
	}
	if attempt <= r.attempt {
		return m.search(ctx, tx, r) // it may be the places that were missing
	}
	if r.current != nil {
		if err := m.release(ctx, tx, r, why); err != nil {
			return err
		}
	}
	var ended bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM couriers.reservations
		WHERE tenant = $1 AND order_id = $2 AND attempt = $3)`, r.tenant, r.order, attempt).Scan(&ended)
	if err != nil {
		return fmt.Errorf("look for attempt %d of order %s: %w", attempt, r.order, err)
	}
	r.attempt, r.told, r.since = attempt, false, m.clock()
	r.givesUp = r.since.Add(m.cfg.Patience)
	r.state = waiting
	if ended {
		r.state = idle
	}
	return m.search(ctx, tx, r)
}

// over ends every attempt up to this one: orders looks no further.
func (m *Module) over(ctx context.Context, tx pgx.Tx, r *request, attempt int32, why contracts.ReleaseReason) error {
	if r.current != nil && r.current.attempt <= attempt && !r.carried {
		if err := m.release(ctx, tx, r, why); err != nil {
			return err
		}
	}
	if r.attempt <= attempt {
		r.attempt = attempt
		if r.state == waiting {
			r.state = idle
		}
	}
	return r.store(ctx, tx)
}

// unpaid ends an attempt whose fee does not stand. Who has the goods is not let
// go by it: they would be given another order with this one on the seat.
func (m *Module) unpaid(ctx context.Context, tx pgx.Tx, r *request, attempt int32, courier uuid.UUID, why contracts.ReleaseReason) error {
	switch c := r.current; {
	case c == nil, c.attempt != attempt:
		return m.bar(ctx, tx, r, attempt, courier, why)
	case r.carried:
		m.cfg.Logger.WarnContext(ctx, "couriers: the fee of an order that is being carried does not stand",
			"order", r.order, "attempt", attempt)
		return nil
	}
	return m.release(ctx, tx, r, why)
}

// pickedUp confirms as OrderAssigned does, should that not have come yet, and
// bars the courier's release from now on.
func (m *Module) pickedUp(ctx context.Context, tx pgx.Tx, r *request) error {
	r.carried = true
	if r.current != nil && !r.current.confirmed {
		return m.confirm(ctx, tx, r)
	}
	return r.store(ctx, tx)
}

// cancelled lets go of the courier, or ends the search, and bars every search to
// come.
func (m *Module) cancelled(ctx context.Context, tx pgx.Tx, r *request) error {
	was := r.state
	r.state = closed
	switch {
	case r.current != nil:
		return m.release(ctx, tx, r, contracts.ReleaseReasonCancelled)
	case was == waiting:
		return m.sayFailed(ctx, tx, r, contracts.ReservationFailureOrderGone, true)
	}
	return r.store(ctx, tx)
}

// done frees the courier at the end of an order that was carried.
func (m *Module) done(ctx context.Context, tx pgx.Tx, r *request) error {
	r.state = closed
	if r.current != nil {
		return m.finish(ctx, tx, r)
	}
	return r.store(ctx, tx)
}
