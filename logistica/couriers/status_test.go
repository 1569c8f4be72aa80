package couriers_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
)

func TestDutyIsTheCouriersOwnWhileNoOrderIsTheirs(t *testing.T) {
	for _, from := range couriers.States() {
		if e := contracts.CourierState(from); !e.Valid() {
			t.Errorf("%s is not in the contract", from)
		}
		allowed := couriers.Allowed(from)
		if slices.Contains(allowed, couriers.Reserved) || slices.Contains(allowed, couriers.Busy) || slices.Contains(allowed, from) {
			t.Errorf("from %s: %v", from, allowed)
		}
	}
	if couriers.Allowed(couriers.Reserved) != nil || couriers.Allowed(couriers.Busy) != nil {
		t.Error("an order is theirs")
	}
}

func TestStatusIsRefusedWithWhatIsAllowed(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui := b.offline(t, shop)
	var forbidden *couriers.ForbiddenStatus
	if _, err := b.SetStatus(t.Context(), rui, couriers.Paused, nil); !errors.As(err, &forbidden) || !slices.Equal(forbidden.Allowed, []couriers.State{couriers.Available}) {
		t.Errorf("from OFFLINE: %v", err)
	}
	if c := b.status(t, rui, couriers.Available); c.Version != 1 {
		t.Errorf("%+v", c)
	}
	if c := b.status(t, rui, couriers.Available); c.Version != 1 {
		t.Errorf("a repetition counts: %+v", c)
	}
	b.create(t, shop)
	for _, to := range []couriers.State{couriers.Paused, couriers.Offline, couriers.Available} {
		_, err := b.SetStatus(t.Context(), rui, to, nil)
		if !errors.As(err, &forbidden) || !strings.Contains(err.Error(), "when it has ended") {
			t.Errorf("%s while reserved: %v", to, err)
		}
	}
	var conflict *couriers.VersionConflict
	old := int64(1)
	if _, err := b.SetStatus(t.Context(), rui, couriers.Reserved, &old); !errors.As(err, &conflict) || conflict.Current != 2 {
		t.Errorf("an old version: %v", err)
	}
	if _, err := b.SetStatus(t.Context(), event.NewID(), couriers.Available, nil); !errors.Is(err, couriers.ErrNotFound) {
		t.Errorf("a stranger: %v", err)
	}
}

func TestEnrollingTwiceIsOneCourier(t *testing.T) {
	t.Parallel()
	b, shop, other := newBed(t), event.NewID(), event.NewID()
	id := event.NewID()
	e := couriers.Enrolment{ID: id, Name: "Rui", Vehicle: "MOTORBIKE", Tenants: []uuid.UUID{shop}, Key: tenants.NewKey(id)}
	if key, err := b.Enroll(t.Context(), b.keys, e); err != nil || key != e.Key {
		t.Fatal(err)
	}
	b.status(t, id, couriers.Available)
	e.Name, e.Vehicle, e.Tenants = "Rui Alves", "BICYCLE", []uuid.UUID{other}
	if _, err := b.Enroll(t.Context(), tenants.New(b.pool, tenants.Config{}), e); err != nil {
		t.Fatal(err)
	}
	want := couriers.Courier{ID: id, Name: "Rui Alves", Vehicle: "BICYCLE", State: couriers.Available, Version: 1}
	if c := b.get(t, id); c != want {
		t.Errorf("%+v", c)
	}
	for _, tenant := range []uuid.UUID{shop, other} {
		if list, err := b.Linked(t.Context(), tenant); err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
		}
	}
	if who, err := b.keys.Authenticate(t.Context(), e.Key); err != nil || who.Courier != id {
		t.Errorf("%+v, %v", who, err)
	}
	for _, bad := range []couriers.Enrolment{{Name: "x", Vehicle: "CAR"}, {ID: id, Vehicle: "CAR"}, {ID: id, Name: "x", Vehicle: "UNKNOWN"}} {
		if _, err := b.Enroll(t.Context(), b.keys, bad); err == nil {
			t.Errorf("enrolled %+v", bad)
		}
	}
}
