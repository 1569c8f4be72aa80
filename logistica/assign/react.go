package assign

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	saga "github.com/waybillhq/waybill/saga/contracts"
)

// Couriers lets a courier go who is held for an attempt that is to be taken back,
// and asks orders to where one stands still.
type Couriers interface {
	Overdue(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID, attempt int32, back bool) error
}

// Billing voids the fee of an attempt that is to be taken back.
type Billing interface {
	Overdue(ctx context.Context, tx pgx.Tx, tenant, order uuid.UUID, attempt int32, back bool) error
}

// ReactCouriers has couriers hear of what stands still. On the way forward,
// whatever it is, they ask that a courier who is not out with the order is let
// go, which turns the attempt back; on the way back they let the courier go, once
// it is their turn: compensation keeps its order, also where a fee was voided by
// hand.
func ReactCouriers(g *consumer.Group, c Couriers) {
	overdue := func(ctx context.Context, tx pgx.Tx, env event.Envelope, key string, round int32, d saga.Direction) error {
		tenant, order, err := of(env, key)
		if err != nil {
			return err
		}
		return c.Overdue(ctx, tx, tenant, order, round, d == saga.DirectionBack)
	}
	consumer.On(g, func(ctx context.Context, tx pgx.Tx, e event.Of[saga.StepOverdue]) error {
		if e.Data.Saga != Name || e.Data.Direction == saga.DirectionBack && e.Data.Step != "reserve" {
			return nil
		}
		return overdue(ctx, tx, e.Envelope, e.Data.Key, e.Data.Round, e.Data.Direction)
	})
	consumer.On(g, func(ctx context.Context, tx pgx.Tx, e event.Of[saga.StepSkipped]) error {
		if e.Data.Saga != Name || e.Data.Direction != saga.DirectionBack {
			return nil
		}
		return overdue(ctx, tx, e.Envelope, e.Data.Key, e.Data.Round, e.Data.Direction)
	})
}

// ReactBilling has billing try again to void a fee.
func ReactBilling(g *consumer.Group, b Billing) {
	consumer.On(g, func(ctx context.Context, tx pgx.Tx, e event.Of[saga.StepOverdue]) error {
		if e.Data.Saga != Name || e.Data.Step != "bill" {
			return nil
		}
		tenant, order, err := of(e.Envelope, e.Data.Key)
		if err != nil {
			return err
		}
		return b.Overdue(ctx, tx, tenant, order, e.Data.Round, e.Data.Direction == saga.DirectionBack)
	})
}

// of reads whose order a saga is about.
func of(env event.Envelope, key string) (tenant, order uuid.UUID, err error) {
	if tenant, err = uuid.Parse(env.Tenant); err == nil {
		order, err = uuid.Parse(key)
	}
	if err != nil {
		return tenant, order, consumer.Permanent(fmt.Errorf("order %.64q of tenant %.64q: %w", key, env.Tenant, err))
	}
	return tenant, order, nil
}
