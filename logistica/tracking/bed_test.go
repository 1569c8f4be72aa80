package tracking

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

var noon = time.Date(2026, 5, 1, 15, 0, 0, 0, time.UTC)

type bed struct {
	*Tracker
	t testing.TB
}

func newBed(t testing.TB) *bed {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pg.Migrate(t.Context(), pool, Migration()); err != nil {
		t.Fatal(err)
	}
	var super, bypass bool
	err = pool.QueryRow(t.Context(), `SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&super, &bypass)
	if err != nil || super || bypass {
		t.Fatalf("superuser %v, bypasses row-level security %v, %v", super, bypass, err)
	}
	return &bed{New(pool, Config{Now: func() time.Time { return noon }}), t}
}

// give hands an event to the model in a transaction of its own.
func give[E event.Data](b *bed, tenant uuid.UUID, data E, h func(context.Context, pgx.Tx, event.Of[E]) error) error {
	e := event.Of[E]{Envelope: event.Envelope{Tenant: tenant.String(), Subject: data.EventKey(), Time: noon.Add(-time.Hour)}, Data: data}
	return pgx.BeginFunc(b.t.Context(), b.pool, func(tx pgx.Tx) error { return h(b.t.Context(), tx, e) })
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// ride is an order with its courier.
type ride struct{ tenant, order, courier uuid.UUID }

func newRide() ride { return ride{event.NewID(), event.NewID(), event.NewID()} }

func (b *bed) created(r ride) {
	b.t.Helper()
	b.must(give(b, r.tenant, contracts.OrderCreated{
		OrderID: r.order, Version: 1,
		Pickup:  contracts.CoarsePlace{Lat: -23.556, Lng: -46.658},
		Dropoff: contracts.CoarsePlace{Lat: -23.562, Lng: -46.656},
	}, b.Created))
}

func (b *bed) assigned(r ride, version int64) {
	b.t.Helper()
	b.must(give(b, r.tenant, contracts.OrderAssigned{OrderID: r.order, CourierID: r.courier, Version: version}, b.Assigned))
}

func (b *bed) moved(r ride, version int64, to contracts.OrderState) {
	b.t.Helper()
	b.must(give(b, r.tenant, contracts.OrderStatusChanged{OrderID: r.order, Version: version, To: to}, b.StatusChanged))
}

// out has a courier ride for the order.
func (b *bed) out() ride {
	b.t.Helper()
	r := newRide()
	b.created(r)
	b.moved(r, 2, contracts.OrderStateAssigning)
	b.moved(r, 3, contracts.OrderStateAssigned)
	b.assigned(r, 4)
	return r
}

// fix is the courier's n-th, five seconds after the one before.
func fix(courier uuid.UUID, n int64) contracts.CourierLocationUpdated {
	at := noon.Add(-30*time.Minute + time.Duration(n)*5*time.Second)
	return contracts.CourierLocationUpdated{
		CourierID: courier, Seq: n, Lat: -23.55 - float64(n)/10_000, Lng: -46.63, FixTime: at, ReceivedAt: at.Add(time.Second),
	}
}

func (b *bed) located(fixes ...contracts.CourierLocationUpdated) {
	b.t.Helper()
	es := make([]event.Of[contracts.CourierLocationUpdated], len(fixes))
	for i, f := range fixes {
		es[i].Data = f
	}
	b.must(pgx.BeginFunc(b.t.Context(), b.pool, func(tx pgx.Tx) error { return b.Located(b.t.Context(), tx, es) }))
}

// requireSeen wants the fix of that number to be seen by the ride's tenant and
// by its link.
func (b *bed) requireSeen(r ride, seq int64) {
	b.t.Helper()
	p, err := b.Position(b.t.Context(), r.tenant, r.order)
	q, err2 := b.ForOrder(b.t.Context(), r.order)
	if errors.Join(err, err2) != nil || p.Seq != seq || q.Seq != seq || p.Courier != r.courier {
		b.t.Fatalf("the merchant sees %+v (%v), the link %+v (%v), want fix %d", p, err, q, err2, seq)
	}
}

// requireUnseen wants nobody to see anything.
func (b *bed) requireUnseen(r ride) {
	b.t.Helper()
	_, err := b.Position(b.t.Context(), r.tenant, r.order)
	_, err2 := b.ForOrder(b.t.Context(), r.order)
	way, err3 := b.Trail(b.t.Context(), r.tenant, r.order)
	if !errors.Is(err, ErrNotFound) || !errors.Is(err2, ErrNotFound) || err3 != nil || len(way) != 0 {
		b.t.Fatalf("the merchant: %v, the link: %v, the trail: %d fixes (%v)", err, err2, len(way), err3)
	}
}
