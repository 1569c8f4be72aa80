package couriers

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// Group is the consumer group of the module's handlers.
const Group = "couriers"

// Subscribe registers the module's handlers with their group. It takes events of
// one order from two topics, in whatever order they come.
func (m *Module) Subscribe(g *consumer.Group) {
	consumer.On(g, m.OrderCreated)
	consumer.On(g, m.OrderStatusChanged)
	consumer.On(g, m.OrderAssigned)
	consumer.On(g, m.PlatformFeeFailed)
	consumer.On(g, m.PlatformFeeVoided)
}

// opened opens the order an event is about.
func (m *Module) opened(ctx context.Context, tx pgx.Tx, e *event.Envelope, order uuid.UUID) (*request, error) {
	tenant, err := uuid.Parse(e.Tenant)
	if err != nil {
		return nil, fmt.Errorf("order %s: tenant %.64q: %w", order, e.Tenant, err)
	}
	return m.open(ctx, tx, tenant, order)
}

// OrderCreated begins the search for a courier.
func (m *Module) OrderCreated(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderCreated]) error {
	r, err := m.opened(ctx, tx, &e.Envelope, e.Data.OrderID)
	if err != nil {
		return err
	}
	if r.pickup == nil {
		r.pickup = &point{e.Data.Pickup.Lat, e.Data.Pickup.Lng}
		r.dropoff = &point{e.Data.Dropoff.Lat, e.Data.Dropoff.Lng}
	}
	return m.want(ctx, tx, r, 1, contracts.ReleaseReasonOperator)
}

// OrderStatusChanged begins a further search, or ends what the order wants.
func (m *Module) OrderStatusChanged(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderStatusChanged]) error {
	var settle func(context.Context, pgx.Tx, *request) error
	attempt := int32(1) // of events from before orders counted attempts
	if e.Data.Attempt != nil {
		attempt = *e.Data.Attempt
	}
	switch e.Data.To {
	case contracts.OrderStateCreated:
		settle = func(ctx context.Context, tx pgx.Tx, r *request) error {
			if e.Data.From == contracts.OrderStateUnassignable { // the merchant tries again, with everybody
				r.fresh = max(r.fresh, attempt)
			}
			return m.want(ctx, tx, r, attempt, answered(e.Data.Reason))
		}
	case contracts.OrderStateUnassignable:
		settle = func(ctx context.Context, tx pgx.Tx, r *request) error {
			return m.over(ctx, tx, r, attempt, answered(e.Data.Reason))
		}
	case contracts.OrderStatePickedUp:
		settle = m.pickedUp
	case contracts.OrderStateCancelled:
		settle = m.cancelled
	case contracts.OrderStateDelivered, contracts.OrderStateReturned:
		settle = m.done
	default:
		return nil
	}
	r, err := m.opened(ctx, tx, &e.Envelope, e.Data.OrderID)
	if err != nil {
		return err
	}
	return settle(ctx, tx, r)
}

// OrderAssigned confirms the reservation it was made of. One that was released
// before stays so, and orders hears of that.
func (m *Module) OrderAssigned(ctx context.Context, tx pgx.Tx, e event.Of[contracts.OrderAssigned]) error {
	r, err := m.opened(ctx, tx, &e.Envelope, e.Data.OrderID)
	if err != nil {
		return err
	}
	c := r.current
	if c == nil || c.attempt != e.Data.Attempt || c.courier != e.Data.CourierID || c.confirmed {
		return nil
	}
	return m.confirm(ctx, tx, r)
}

// PlatformFeeFailed lets go of the courier the fee was for.
func (m *Module) PlatformFeeFailed(ctx context.Context, tx pgx.Tx, e event.Of[contracts.PlatformFeeFailed]) error {
	r, err := m.opened(ctx, tx, &e.Envelope, e.Data.OrderID)
	if err != nil {
		return err
	}
	return m.unpaid(ctx, tx, r, e.Data.Attempt, e.Data.CourierID, contracts.ReleaseReasonFeeFailed)
}

// PlatformFeeVoided lets go of the courier the fee was for: nobody was told, or
// the courier is free already and it changes nothing.
func (m *Module) PlatformFeeVoided(ctx context.Context, tx pgx.Tx, e event.Of[contracts.PlatformFeeVoided]) error {
	r, err := m.opened(ctx, tx, &e.Envelope, e.Data.OrderID)
	if err != nil {
		return err
	}
	return m.unpaid(ctx, tx, r, e.Data.Attempt, e.Data.CourierID, contracts.ReleaseReasonNotificationFailed)
}
