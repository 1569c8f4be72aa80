package orders_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
)

// saga is all that other modules may say of one attempt.
type saga struct {
	reserved contracts.CourierReserved
	waits    contracts.CourierReservationFailed
	failed   contracts.CourierReservationFailed
	billed   contracts.PlatformFeeBilled
	voided   contracts.PlatformFeeVoided
	notified contracts.CourierNotified
	released contracts.CourierReleased
}

func newSaga(order uuid.UUID, attempt int32) saga {
	courier, fee := event.NewID(), event.NewID()
	now := time.Now().UTC().Truncate(time.Microsecond)
	return saga{
		reserved: contracts.CourierReserved{
			OrderID: order, Version: 1, Attempt: attempt, CourierID: courier, VehicleType: contracts.VehicleTypeMotorbike,
			ReservedUntil: now.Add(time.Minute), PickupETA: now.Add(10 * time.Minute), DeliveryETA: now.Add(30 * time.Minute), DistanceM: 4200,
		},
		waits:    contracts.CourierReservationFailed{OrderID: order, Attempt: attempt, Reason: contracts.ReservationFailureNoCourier},
		failed:   contracts.CourierReservationFailed{OrderID: order, Attempt: attempt, Reason: contracts.ReservationFailureNoCourier, Final: true},
		billed:   contracts.PlatformFeeBilled{OrderID: order, Attempt: attempt, CourierID: courier, FeeID: fee, Amount: 150, Currency: "BRL"},
		voided:   contracts.PlatformFeeVoided{OrderID: order, Attempt: attempt, CourierID: courier, FeeID: fee, Amount: 150, Currency: "BRL", Reason: "released"},
		notified: contracts.CourierNotified{OrderID: order, Attempt: attempt, CourierID: courier, FeeID: fee},
		released: contracts.CourierReleased{OrderID: order, Attempt: attempt, CourierID: courier, Reason: contracts.ReleaseReasonDeclined},
	}
}

// hear hands one event to the store in a transaction of its own, as a consumer
// does, without the consumer's memory of what was handled.
func (b bed) hear(ctx context.Context, tenant uuid.UUID, data event.Data) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return b.hearIn(ctx, tx, tenant, data) })
}

func (b bed) hearIn(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, data event.Data) error {
	ctx = event.WithTenant(ctx, tenant.String())
	env := event.Envelope{Tenant: tenant.String(), Type: "test", Subject: data.EventKey(), Time: time.Now()}
	switch d := data.(type) {
	case contracts.CourierReserved:
		return b.CourierReserved(ctx, tx, event.Of[contracts.CourierReserved]{Envelope: env, Data: d})
	case contracts.CourierReservationFailed:
		return b.CourierReservationFailed(ctx, tx, event.Of[contracts.CourierReservationFailed]{Envelope: env, Data: d})
	case contracts.PlatformFeeBilled:
		return b.PlatformFeeBilled(ctx, tx, event.Of[contracts.PlatformFeeBilled]{Envelope: env, Data: d})
	case contracts.PlatformFeeVoided:
		return b.PlatformFeeVoided(ctx, tx, event.Of[contracts.PlatformFeeVoided]{Envelope: env, Data: d})
	case contracts.CourierNotified:
		return b.CourierNotified(ctx, tx, event.Of[contracts.CourierNotified]{Envelope: env, Data: d})
	case contracts.CourierReleaseAsked:
		return b.CourierReleaseAsked(ctx, tx, event.Of[contracts.CourierReleaseAsked]{Envelope: env, Data: d})
	case contracts.CourierReleased:
		return b.CourierReleased(ctx, tx, event.Of[contracts.CourierReleased]{Envelope: env, Data: d})
	}
	panic("no handler")
}

func (b bed) give(t testing.TB, tenant uuid.UUID, told ...event.Data) {
	t.Helper()
	for _, data := range told {
		if err := b.hear(t.Context(), tenant, data); err != nil {
			t.Fatalf("%T: %v", data, err)
		}
	}
}

// assigned is an order that the saga gave a courier.
func (b bed) assigned(t testing.TB, tenant uuid.UUID) (orders.Order, saga) {
	t.Helper()
	o := b.create(t, tenant)
	s := newSaga(o.ID, 1)
	b.give(t, tenant, s.reserved, s.billed, s.notified)
	return b.get(t, tenant, o.ID), s
}

func (b bed) get(t testing.TB, tenant, id uuid.UUID) orders.Order {
	t.Helper()
	o, err := b.Get(t.Context(), tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// requireGapless: version n of an order is its n-th event, and the order is at
// the last.
func (b bed) requireGapless(t testing.TB, o orders.Order) (types []string) {
	t.Helper()
	for i, e := range b.events(t, o.ID) {
		if e.Sequence != int64(i+1) {
			t.Errorf("event %d of %s, a %s, has version %d", i+1, o.ID, e.Type, e.Sequence)
		}
		types = append(types, e.Type[len("logistica.orders."):])
	}
	if o.Version != int64(len(types)) {
		t.Errorf("order %s is at version %d of %d events", o.ID, o.Version, len(types))
	}
	return types
}

func shuffled(told []event.Data) []event.Data {
	rand.Shuffle(len(told), func(i, j int) { told[i], told[j] = told[j], told[i] })
	return told
}

func decode[E event.Data](t testing.TB, body []byte) (e E) {
	t.Helper()
	if _, err := e.EventContract().Schema.Decode(body, &e); err != nil {
		t.Fatal(err)
	}
	return e
}
