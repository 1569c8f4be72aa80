package couriers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
)

func TestAnOrderHoldsACourierUntilItIsDone(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui := b.enrol(t, shop)
	order := b.create(t, shop)
	b.requireState(t, rui, couriers.Reserved)
	b.assign(t, shop, order, rui, 1)
	b.requireState(t, rui, couriers.Busy)
	b.change(t, shop, order, contracts.OrderStatePickedUp, 1)
	b.change(t, shop, order, contracts.OrderStateDelivered, 1)
	b.requireState(t, rui, couriers.Available)
	b.requireTale(t, order, "reserved 1")
	e, ok := b.heard(t, "couriers.reservations", order)[0].Data.(*contracts.CourierReserved)
	if !ok || e.CourierID != rui || e.VehicleType != "MOTORBIKE" || !e.PickupETA.After(*b.time) || !e.DeliveryETA.After(e.PickupETA) || e.ReservedUntil.Sub(*b.time).Round(time.Second) != 2*time.Minute {
		t.Errorf("%+v", e)
	}
	events := b.heard(t, "couriers.events", rui)
	if len(events) != 4 || events[0].Tenant != tenants.Platform.String() {
		t.Errorf("%+v", events)
	}
	b.requireGapless(t)
}

func TestTheNearestFreeCourierIsTaken(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	unheard, far, near, nearest := b.enrol(t, shop), b.enrol(t, shop), b.enrol(t, shop), b.enrol(t, shop)
	b.at(t, far, 1, pickup.Lat+0.1, pickup.Lng)
	b.at(t, near, 1, pickup.Lat, pickup.Lng+0.02)
	b.at(t, nearest, 1, pickup.Lat+0.001, pickup.Lng)
	b.status(t, nearest, couriers.Paused)
	for i, want := range []uuid.UUID{near, far, unheard} {
		b.create(t, shop)
		b.requireState(t, want, couriers.Reserved)
		if i == 2 {
			b.requireState(t, nearest, couriers.Paused)
		}
	}
}

func TestAWaitingOrderIsToldOnceAndServedByWhoBecomesFree(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui := b.offline(t, shop)
	first := b.create(t, shop)
	b.ahead(time.Second)
	second := b.create(t, shop)
	if _, err := b.ServeWaiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.requireTale(t, first, "failed 1 NO_COURIER final=false")
	if c := b.status(t, rui, couriers.Available); c.State != couriers.Reserved || c.Version != 2 {
		t.Errorf("%+v", c)
	}
	b.requireTale(t, first, "failed 1 NO_COURIER final=false", "reserved 1")
	b.requireTale(t, second, "failed 1 NO_COURIER final=false")
	b.change(t, shop, first, contracts.OrderStateCancelled, 1)
	b.requireTale(t, second, "failed 1 NO_COURIER final=false", "reserved 1")
	b.requireState(t, rui, couriers.Reserved)
	b.requireGapless(t)
}

func TestACourierFreedByOneMerchantServesAnothersWithoutTellingThem(t *testing.T) {
	t.Parallel()
	b, shop, other := newBed(t), event.NewID(), event.NewID()
	rui := b.enrol(t, shop, other)
	order := b.create(t, shop)
	waits := b.create(t, other)
	b.change(t, shop, order, contracts.OrderStateCancelled, 1)
	b.requireTale(t, waits, "failed 1 NO_COURIER final=false", "reserved 1")
	b.requireState(t, rui, couriers.Reserved)
	theirs := b.heard(t, "couriers.reservations", waits)[1]
	for _, ours := range b.heard(t, "couriers.reservations", order) {
		if ours.Tenant != shop.String() || theirs.Tenant != other.String() || ours.Correlation == theirs.Correlation {
			t.Errorf("ours %+v, theirs %+v", ours, theirs)
		}
	}
}

func TestASearchEndsWhenPatienceIsOver(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	order := b.create(t, shop)
	b.ahead(10*time.Minute + time.Second)
	for range 2 {
		if _, err := b.GiveUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.requireTale(t, order, "failed 1 NO_COURIER final=false", "failed 1 NO_COURIER final=true")
	rui := b.enrol(t, shop)
	b.requireState(t, rui, couriers.Available)
	b.change(t, shop, order, contracts.OrderStateUnassignable, 1)
	b.change(t, shop, order, contracts.OrderStateCreated, 2)
	b.requireState(t, rui, couriers.Reserved)
}

func TestWhoWasLetGoDoesNotGetTheOrderAgainUntilTheMerchantTriesAnew(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui := b.enrol(t, shop)
	order := b.create(t, shop)
	for range 2 { // an impatient thumb
		if err := b.Decline(event.WithTenant(t.Context(), tenants.Platform.String()), rui, order, "flat tyre"); err != nil {
			t.Fatal(err)
		}
	}
	b.requireState(t, rui, couriers.Reserved) // until orders agrees
	b.letGo(t, shop, order, 2, "DECLINED")
	b.requireState(t, rui, couriers.Available)
	b.status(t, rui, couriers.Paused)
	b.status(t, rui, couriers.Available)
	b.requireState(t, rui, couriers.Available)
	b.requireTale(t, order, "reserved 1", "asked 1 DECLINED", "released 1 DECLINED", "failed 2 NO_COURIER final=false")
	again := changed(order, contracts.OrderStateCreated, 3)
	again.From = contracts.OrderStateUnassignable
	if err := give(t.Context(), b.pool, shop, again, b.OrderStatusChanged); err != nil {
		t.Fatal(err)
	}
	b.requireState(t, rui, couriers.Reserved)
}

func TestEachCompensationReleasesOnce(t *testing.T) {
	t.Parallel()
	for reason, undo := range map[string]func(*testing.T, *bed, uuid.UUID, uuid.UUID, uuid.UUID){
		"FEE_FAILED":          func(t *testing.T, b *bed, shop, order, rui uuid.UUID) { b.failFee(t, shop, order, rui, 1) },
		"NOTIFICATION_FAILED": func(t *testing.T, b *bed, shop, order, rui uuid.UUID) { b.void(t, shop, order, rui, 1) },
		"EXPIRED":             func(t *testing.T, b *bed, shop, order, _ uuid.UUID) { b.overdue(t, shop, order, 1, true) },
		"CANCELLED": func(t *testing.T, b *bed, shop, order, _ uuid.UUID) {
			b.change(t, shop, order, contracts.OrderStateCancelled, 1)
		},
		"REASSIGNED": func(t *testing.T, b *bed, shop, order, _ uuid.UUID) {
			last := changed(order, contracts.OrderStateUnassignable, 1)
			reason := "REASSIGNED"
			last.Reason = &reason
			if err := give(t.Context(), b.pool, shop, last, b.OrderStatusChanged); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			b, shop := newBed(t), event.NewID()
			rui := b.enrol(t, shop)
			order := b.create(t, shop)
			for range 2 {
				undo(t, b, shop, order, rui)
			}
			b.assign(t, shop, order, rui, 1) // late: the release wins
			b.requireTale(t, order, "reserved 1", "released 1 "+reason)
			b.requireState(t, rui, couriers.Available)
			b.requireGapless(t)
		})
	}
}

func TestWhatComesFirstBarsTheLateOne(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui, ana := b.enrol(t, shop), b.enrol(t, shop) // ana was never let go of
	for name, first := range map[string]func(order uuid.UUID){
		"cancelled":  func(o uuid.UUID) { b.change(t, shop, o, contracts.OrderStateCancelled, 1) },
		"delivered":  func(o uuid.UUID) { b.change(t, shop, o, contracts.OrderStateDelivered, 1) },
		"fee failed": func(o uuid.UUID) { b.failFee(t, shop, o, rui, 1) },
		"fee voided": func(o uuid.UUID) { b.void(t, shop, o, rui, 1) },
	} {
		order := event.NewID()
		first(order)
		first(order)
		if err := give(t.Context(), b.pool, shop, created(order), b.OrderCreated); err != nil {
			t.Fatal(err)
		}
		for _, c := range []couriers.Courier{b.get(t, rui), b.get(t, ana)} {
			if c.State != couriers.Available || c.Version != 1 {
				t.Errorf("%s: the courier is %+v; %s", name, c, b.tale(t, order))
			}
		}
	}
}

// The second attempt is heard of first, without the places it needs.
func TestALaterAttemptBeforeTheOrderItself(t *testing.T) {
	t.Parallel()
	b, shop, order := newBed(t), event.NewID(), event.NewID()
	rui := b.enrol(t, shop)
	b.change(t, shop, order, contracts.OrderStateCreated, 2)
	b.requireState(t, rui, couriers.Available)
	for range 2 {
		if err := give(t.Context(), b.pool, shop, created(order), b.OrderCreated); err != nil {
			t.Fatal(err)
		}
	}
	b.requireTale(t, order, "reserved 2")
}

func TestWhatExpiresIsAskedForAndWhatIsConfirmedIsNot(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui, ana := b.enrol(t, shop), b.enrol(t, shop)
	late, good := b.create(t, shop), b.create(t, shop)
	holder := b.heard(t, "couriers.reservations", good)[0].Data.(*contracts.CourierReserved).CourierID
	b.assign(t, shop, good, holder, 1)
	if n, err := b.Expire(t.Context()); err != nil || n != 0 {
		t.Fatalf("%d before the deadline, %v", n, err)
	}
	b.ahead(2*time.Minute + time.Second)
	for range 2 {
		if _, err := b.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.requireTale(t, late, "reserved 1", "asked 1 EXPIRED") // once: the deadline is put off
	b.requireState(t, b.heard(t, "couriers.reservations", late)[0].Data.(*contracts.CourierReserved).CourierID, couriers.Reserved)
	b.ahead(2*time.Minute + time.Second)
	if _, err := b.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.letGo(t, shop, late, 2, "EXPIRED")
	b.requireTale(t, late, "reserved 1", "asked 1 EXPIRED", "asked 1 EXPIRED", "released 1 EXPIRED", "failed 2 NO_COURIER final=false")
	b.requireTale(t, good, "reserved 1")
	for _, c := range []uuid.UUID{rui, ana} {
		want := couriers.Available
		if c == holder {
			want = couriers.Busy
		}
		b.requireState(t, c, want)
	}
}

func TestGoodsThatAreCarriedStayWithTheirCourier(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui := b.enrol(t, shop)
	order := b.create(t, shop)
	b.change(t, shop, order, contracts.OrderStatePickedUp, 1) // before OrderAssigned: confirms as well
	b.requireState(t, rui, couriers.Busy)
	ctx := event.WithTenant(t.Context(), shop.String())
	if err := b.Decline(ctx, rui, order, ""); !errors.Is(err, couriers.ErrCarried) {
		t.Errorf("decline: %v", err)
	}
	if err := b.Reassign(ctx, shop, order); !errors.Is(err, couriers.ErrCarried) {
		t.Errorf("reassign: %v", err)
	}
	b.ahead(time.Hour)
	if _, err := b.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.void(t, shop, order, rui, 1)
	b.requireState(t, rui, couriers.Busy)
	b.change(t, shop, order, contracts.OrderStateReturned, 1)
	b.requireState(t, rui, couriers.Available)
}
