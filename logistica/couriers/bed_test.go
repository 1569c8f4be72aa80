package couriers_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// bed is the module on a database of its own, with the real outbox and
// directory. Its clock moves only by ahead.
type bed struct {
	*couriers.Module
	pool *pgxpool.Pool
	keys *tenants.Directory
	time *time.Time
}

func newBed(t testing.TB) *bed {
	t.Helper()
	return bedOn(t, pgtest.Migrated(t, tables.Migration(), tenants.Migration(), couriers.Migration()))
}

func bedOn(t testing.TB, dsn string) *bed {
	t.Helper()
	pool, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pg.Migrate(t.Context(), pool, tables.Migration(), tenants.Migration(), couriers.Migration()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	b := &bed{pool: pool, keys: tenants.New(pool, tenants.Config{}), time: &now}
	b.Module = couriers.New(pool, outbox.New(contracts.All(), outbox.Config{}), couriers.Config{Now: func() time.Time { return *b.time }})
	return b
}

func (b *bed) ahead(d time.Duration) { *b.time = b.time.Add(d) }

// enrol makes a courier who is AVAILABLE and rides for the tenants.
func (b *bed) enrol(t testing.TB, of ...uuid.UUID) uuid.UUID {
	t.Helper()
	id := b.offline(t, of...)
	b.status(t, id, couriers.Available)
	return id
}

func (b *bed) offline(t testing.TB, of ...uuid.UUID) uuid.UUID {
	t.Helper()
	id := event.NewID()
	_, err := b.Enroll(t.Context(), b.keys, couriers.Enrolment{ID: id, Name: "Rui", Vehicle: "MOTORBIKE", Tenants: of})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *bed) status(t testing.TB, id uuid.UUID, to couriers.State) couriers.Courier {
	t.Helper()
	c, err := b.SetStatus(event.WithTenant(t.Context(), tenants.Platform.String()), id, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// give hands an event to a handler in a transaction of its own, as a consumer
// does, without the consumer's memory of what was handled.
func give[E event.Data](ctx context.Context, pool *pgxpool.Pool, tenant uuid.UUID, data E, h func(context.Context, pgx.Tx, event.Of[E]) error) error {
	e := event.Of[E]{Envelope: event.Envelope{ID: event.NewID(), Tenant: tenant.String(), Subject: data.EventKey(), Sequence: data.EventSequence()}, Data: data}
	ctx = event.WithCause(ctx, &e.Envelope)
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return h(ctx, tx, e) })
}

var (
	pickup  = contracts.CoarsePlace{District: "Consolação", Lat: -23.556, Lng: -46.658}
	dropoff = contracts.CoarsePlace{District: "Bela Vista", Lat: -23.561, Lng: -46.656}
)

func created(order uuid.UUID) contracts.OrderCreated {
	return contracts.OrderCreated{OrderID: order, Version: 1, Pickup: pickup, Dropoff: dropoff}
}

func changed(order uuid.UUID, to contracts.OrderState, attempt int32) contracts.OrderStatusChanged {
	return contracts.OrderStatusChanged{OrderID: order, Version: 2, From: "ASSIGNING", To: to, Actor: "SYSTEM", Attempt: &attempt}
}

func assigned(order, courier uuid.UUID, attempt int32) contracts.OrderAssigned {
	return contracts.OrderAssigned{OrderID: order, Version: 4, CourierID: courier, Attempt: attempt, FeeID: event.NewID()}
}

func (b *bed) create(t testing.TB, tenant uuid.UUID) uuid.UUID {
	t.Helper()
	order := event.NewID()
	if err := give(t.Context(), b.pool, tenant, created(order), b.OrderCreated); err != nil {
		t.Fatal(err)
	}
	return order
}

// letGo has orders answer that it goes on with another attempt.
func letGo(order uuid.UUID, next int32, reason string) contracts.OrderStatusChanged {
	e := changed(order, contracts.OrderStateCreated, next)
	e.Reason = &reason
	return e
}

func (b *bed) letGo(t testing.TB, tenant, order uuid.UUID, next int32, reason string) {
	t.Helper()
	if err := give(t.Context(), b.pool, tenant, letGo(order, next, reason), b.OrderStatusChanged); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) change(t testing.TB, tenant, order uuid.UUID, to contracts.OrderState, attempt int32) {
	t.Helper()
	if err := give(t.Context(), b.pool, tenant, changed(order, to, attempt), b.OrderStatusChanged); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) assign(t testing.TB, tenant, order, courier uuid.UUID, attempt int32) {
	t.Helper()
	if err := give(t.Context(), b.pool, tenant, assigned(order, courier, attempt), b.OrderAssigned); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) failFee(t testing.TB, tenant, order, courier uuid.UUID, attempt int32) {
	t.Helper()
	e := contracts.PlatformFeeFailed{OrderID: order, Version: 1, Attempt: attempt, CourierID: courier, Reason: "card"}
	if err := give(t.Context(), b.pool, tenant, e, b.PlatformFeeFailed); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) void(t testing.TB, tenant, order, courier uuid.UUID, attempt int32) {
	t.Helper()
	e := contracts.PlatformFeeVoided{OrderID: order, Version: 2, Attempt: attempt, CourierID: courier, FeeID: event.NewID(), Reason: "not notified"}
	if err := give(t.Context(), b.pool, tenant, e, b.PlatformFeeVoided); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) overdue(t testing.TB, tenant, order uuid.UUID, attempt int32, back bool) {
	t.Helper()
	ctx := event.WithTenant(t.Context(), tenant.String())
	err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return b.Overdue(ctx, tx, tenant, order, attempt, back) })
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bed) get(t testing.TB, id uuid.UUID) couriers.Courier {
	t.Helper()
	c, err := b.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (b *bed) requireState(t testing.TB, id uuid.UUID, want couriers.State) {
	t.Helper()
	if c := b.get(t, id); c.State != want {
		t.Errorf("courier is %s, want %s", c.State, want)
	}
}
