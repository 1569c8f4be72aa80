package dispatch

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/faults"
)

// Billed writes down and tells what came of [Desk.Send]. If the attempt is known
// to be over it says nothing.
func (d *Desk) Billed(ctx context.Context, tx pgx.Tx, e event.Of[contracts.PlatformFeeBilled], sent Attempted) error {
	return d.settle(ctx, tx, e.Envelope, e.Data.OrderID, e.Data.Attempt, func(f *file) {
		f.notify(Notice{Attempt: e.Data.Attempt, Courier: e.Data.CourierID, Fee: e.Data.FeeID}, sent.Failure)
	})
}

// Voided withdraws the notice of an attempt whose fee was voided, or bars it.
func (d *Desk) Voided(ctx context.Context, tx pgx.Tx, e event.Of[contracts.PlatformFeeVoided]) error {
	if err := faults.Wait(ctx, d.cfg.Faults.Delay(faults.SlowConsumer)); err != nil {
		return err
	}
	return d.settle(ctx, tx, e.Envelope, e.Data.OrderID, e.Data.Attempt, func(f *file) {
		f.end(Notice{Attempt: e.Data.Attempt, Courier: e.Data.CourierID, Fee: e.Data.FeeID}, "the fee was voided: "+e.Data.Reason)
	})
}

// Released withdraws the notice of an attempt whose courier was let go, or bars
// it.
func (d *Desk) Released(ctx context.Context, tx pgx.Tx, e event.Of[contracts.CourierReleased]) error {
	if err := faults.Wait(ctx, d.cfg.Faults.Delay(faults.SlowConsumer)); err != nil {
		return err
	}
	return d.settle(ctx, tx, e.Envelope, e.Data.OrderID, e.Data.Attempt, func(f *file) {
		f.end(Notice{Attempt: e.Data.Attempt, Courier: e.Data.CourierID}, "the courier was released: "+string(e.Data.Reason))
	})
}

// settle runs what an event means for its order's file.
func (d *Desk) settle(ctx context.Context, tx pgx.Tx, env event.Envelope, order uuid.UUID, attempt int32, do func(*file)) error {
	tenant, err := uuid.Parse(env.Tenant)
	if err != nil || attempt < 1 {
		return consumer.Permanent(fmt.Errorf("settle the notice of order %s: tenant %.64q, attempt %d: want a tenant's id, and attempts from 1", order, env.Tenant, attempt))
	}
	f, err := d.open(ctx, tx, tenant, order, attempt)
	if err != nil {
		return err
	}
	do(f)
	return f.close(ctx, tx)
}
