package orders

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// Subscribe has the group orders hear of what other modules did for an order.
//
// A handler notes its fact and moves the order to where all that is known says
// it belongs, in one transaction. It locks the order to the end of it: events
// of one order come from several topics, so two transactions may want the same
// two orders in turn, which Postgres ends for one of them and the group tries
// again. One worker, or Config.MaxBatch 1, spares it that.
func (s *Store) Subscribe(g *consumer.Group) {
	consumer.On(g, s.CourierReserved)
	consumer.On(g, s.CourierReservationFailed)
	consumer.On(g, s.CourierReleased)
	consumer.On(g, s.CourierReleaseAsked)
	consumer.On(g, s.PlatformFeeBilled)
	consumer.On(g, s.PlatformFeeVoided)
	consumer.On(g, s.CourierNotified)
}

// CourierReserved notes that a courier is held for the order: ASSIGNING.
func (s *Store) CourierReserved(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierReserved]) error {
	d, vehicle := e.Data, string(e.Data.VehicleType)
	return s.hear(ctx, tx, e.Envelope, d.OrderID, Assignment{
		Attempt: d.Attempt, Courier: &d.CourierID, Vehicle: &vehicle, ReservedUntil: &d.ReservedUntil,
		PickupETA: &d.PickupETA, DeliveryETA: &d.DeliveryETA, DistanceM: &d.DistanceM, ReservedAt: &e.Time,
	})
}

// CourierReservationFailed notes that the search has ended: UNASSIGNABLE. While
// it goes on there is nothing to note.
func (s *Store) CourierReservationFailed(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierReservationFailed]) error {
	if !e.Data.Final {
		return nil
	}
	d, reason := e.Data, string(e.Data.Reason)
	return s.hear(ctx, tx, e.Envelope, d.OrderID, Assignment{Attempt: d.Attempt, FailedAt: &e.Time, Failure: &reason})
}

// CourierReleased notes that the courier was let go: another attempt, or
// UNASSIGNABLE where that was the last.
func (s *Store) CourierReleased(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierReleased]) error {
	d, reason := e.Data, string(e.Data.Reason)
	return s.hear(ctx, tx, e.Envelope, d.OrderID, Assignment{
		Attempt: d.Attempt, Courier: &d.CourierID, ReleasedAt: &e.Time, ReleaseReason: &reason,
	})
}

// CourierReleaseAsked lets the order go on to another attempt, or not: it is no
// fact of another module but a question, which the first of this and a move of
// the order decides. Couriers lets the courier go when it hears of the attempt.
func (s *Store) CourierReleaseAsked(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierReleaseAsked]) error {
	o, err := s.concerned(ctx, tx, &e.Envelope, e.Data.OrderID)
	if err != nil || e.Data.Attempt != o.Attempt {
		return err
	}
	return s.follow(withTenant(ctx, o.Tenant), tx, &o, letGo(o.State, e.Data.Reason, o.tries() >= s.attempts))
}

// PlatformFeeBilled notes what the merchant owes.
func (s *Store) PlatformFeeBilled(ctx context.Context, tx pgx.Tx, e event.Of[contracts.PlatformFeeBilled]) error {
	d := e.Data
	return s.hear(ctx, tx, e.Envelope, d.OrderID, Assignment{
		Attempt: d.Attempt, Courier: &d.CourierID, FeeID: &d.FeeID, FeeAmount: &d.Amount, FeeCurrency: &d.Currency, BilledAt: &e.Time,
	})
}

// PlatformFeeVoided notes that the merchant owes it no longer: the attempt is
// being undone, so it assigns no more.
func (s *Store) PlatformFeeVoided(ctx context.Context, tx pgx.Tx, e event.Of[contracts.PlatformFeeVoided]) error {
	d := e.Data
	return s.hear(ctx, tx, e.Envelope, d.OrderID, Assignment{
		Attempt: d.Attempt, Courier: &d.CourierID, FeeID: &d.FeeID, FeeAmount: &d.Amount, FeeCurrency: &d.Currency, VoidedAt: &e.Time,
	})
}

// CourierNotified notes that the courier knows: ASSIGNED, once the reservation
// is known too.
func (s *Store) CourierNotified(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierNotified]) error {
	d := e.Data
	return s.hear(ctx, tx, e.Envelope, d.OrderID, Assignment{
		Attempt: d.Attempt, Courier: &d.CourierID, FeeID: &d.FeeID, NotifiedAt: &e.Time,
	})
}

// hear notes a fact and settles the order by it. A fact of an attempt that is
// over is kept, and moves nothing.
func (s *Store) hear(ctx context.Context, tx pgx.Tx, e event.Envelope, id uuid.UUID, fact Assignment) error {
	o, err := s.concerned(ctx, tx, &e, id)
	if err != nil {
		return err
	}
	known, err := learn(ctx, tx, o.Tenant, id, fact)
	if err != nil {
		return err
	}
	if fact.Attempt != o.Attempt {
		return nil
	}
	o.Assignment = known
	return s.settle(withTenant(ctx, o.Tenant), tx, &o)
}

// concerned locks the order that an event is about.
func (s *Store) concerned(ctx context.Context, tx pgx.Tx, e *event.Envelope, id uuid.UUID) (Order, error) {
	tenant, err := uuid.Parse(e.Tenant)
	if err != nil {
		return Order{}, fmt.Errorf("%s of order %s: tenant %.64q: %w", e.Type, id, e.Tenant, err)
	}
	o, err := lock(ctx, tx, tenant, id)
	if err != nil {
		return Order{}, fmt.Errorf("%s of order %s: %w", e.Type, id, err)
	}
	return o, nil
}
