package billing

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/faults"
)

// Reserved bills the fee of an attempt, or says that it cannot. If the attempt
// is known to be over it does neither.
func (l *Ledger) Reserved(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierReserved]) error {
	return l.settle(ctx, tx, e.Envelope, e.Data.OrderID, e.Data.Attempt, func(a *account) error {
		return a.bill(e.Data.Attempt, e.Data.CourierID)
	})
}

// NotificationFailed voids the fee of an attempt whose courier was never told.
func (l *Ledger) NotificationFailed(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierNotificationFailed]) error {
	return l.settle(ctx, tx, e.Envelope, e.Data.OrderID, e.Data.Attempt, func(a *account) error {
		return a.end(e.Data.Attempt, e.Data.CourierID, "the courier could not be told: "+e.Data.Reason)
	})
}

// Released voids the fee of an attempt whose courier was let go, or bars it if
// it was not billed yet.
func (l *Ledger) Released(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierReleased]) error {
	return l.settle(ctx, tx, e.Envelope, e.Data.OrderID, e.Data.Attempt, func(a *account) error {
		return a.end(e.Data.Attempt, e.Data.CourierID, "the courier was released: "+string(e.Data.Reason))
	})
}

// Overdue is for whoever watches over orders whose assignment stands still. If
// it is to be taken back, the attempt's fee is voided where it stands; asked
// again it does nothing. If it is to go on there is nothing to do: what was
// billed was told in the same transaction.
func (l *Ledger) Overdue(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID, attempt int32, back bool) error {
	if !back {
		return nil
	}
	ctx = withTenant(ctx, tenant)
	a, err := l.open(ctx, tx, tenant, order, attempt)
	if err != nil {
		return err
	}
	if err := a.void(attempt, "the assignment was overdue"); err != nil {
		return err
	}
	return a.close(ctx, tx)
}

// settle runs what an event means for its order's account.
func (l *Ledger) settle(ctx context.Context, tx pgx.Tx, env event.Envelope, order uuid.UUID, attempt int32, do func(*account) error) error {
	if err := l.spoil(ctx, env.ID); err != nil {
		return err
	}
	tenant, err := uuid.Parse(env.Tenant)
	if err != nil || attempt < 1 {
		return consumer.Permanent(fmt.Errorf("settle the fee of order %s: tenant %.64q, attempt %d: want a tenant's id, and attempts from 1", order, env.Tenant, attempt))
	}
	a, err := l.open(ctx, tx, tenant, order, attempt)
	if err != nil {
		return err
	}
	if err := do(a); err != nil {
		return err
	}
	return a.close(ctx, tx)
}

var errPoisoned = errors.New("poisoned on purpose: fault " + faults.PoisonEvent + " took this event; clear it with waybill fault clear " +
	faults.PoisonEvent + ", then have the event tried again with waybill dlq redrive")

// spoil is what faults do to any event.
func (l *Ledger) spoil(ctx context.Context, id uuid.UUID) error {
	if err := faults.Wait(ctx, l.faults.Delay(faults.SlowConsumer)); err != nil {
		return err
	}
	poisoned, err := l.faults.Poisoned(ctx, faults.PoisonEvent, id)
	if err != nil {
		return err
	}
	if poisoned {
		return consumer.Permanent(errPoisoned)
	}
	return nil
}

// withTenant is ctx acting for tenant, which the events of a change inherit.
func withTenant(ctx context.Context, tenant uuid.UUID) context.Context {
	if id := tenant.String(); event.Tenant(ctx) != id {
		return event.WithTenant(ctx, id)
	}
	return ctx
}
