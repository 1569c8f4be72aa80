package couriers

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// Settings that the row-level policies read; see the migration.
const (
	forTenant    = "waybill.tenant"
	forCourier   = "waybill.courier"
	choosing     = "waybill.couriers_choosing"
	serving      = "waybill.couriers_serving"
	housekeeping = "waybill.couriers_housekeeping"
)

// set queues a setting that lasts until the transaction ends or it is set anew.
func set(b *pgx.Batch, name, value string) { b.Queue(`SELECT set_config($1, $2, true)`, name, value) }

// asCourier runs fn in a transaction that acts for one courier.
func (m *Module) asCourier(ctx context.Context, courier uuid.UUID, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		set(&b, forCourier, courier.String())
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return fmt.Errorf("act for courier %s: %w", courier, err)
		}
		return fn(tx)
	})
}

// ofTenant is ctx for what is said of a merchant's order. Where ctx acts for
// another, as when one merchant's courier becomes free for another's order, a
// chain of causes of its own begins: a merchant chooses the id of a request, and
// no other merchant shall read it.
func ofTenant(ctx context.Context, tenant uuid.UUID) context.Context {
	id := tenant.String()
	switch event.Tenant(ctx) {
	case id:
		return ctx
	case "", tenants.Platform.String():
		return event.WithTenant(ctx, id)
	}
	return event.WithRequest(event.WithTenant(ctx, id), "", "")
}

// ofPlatform is ctx for what is said of a courier, who is no merchant's alone.
func ofPlatform(ctx context.Context) context.Context {
	return event.WithTenant(ctx, tenants.Platform.String())
}
