package orders_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/orders"
)

func TestHistoryTellsEachChangeAndWhy(t *testing.T) {
	t.Parallel()
	b := newBed(t, orders.Config{})
	tenant := uuid.New()
	o := b.create(t, tenant)
	b.walk(t, tenant, o.ID, orders.Assigning)
	failed := orders.Move{To: orders.Unassignable, Actor: orders.System, Reason: "NO_COURIER"}
	if _, err := b.Transition(t.Context(), tenant, o.ID, failed); err != nil {
		t.Fatal(err)
	}
	got, err := b.History(t.Context(), tenant, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].State != orders.Assigning || got[0].Reason != "" ||
		got[1].State != orders.Unassignable || got[1].Reason != "NO_COURIER" || got[1].Actor != orders.System || got[1].At.Before(got[0].At) {
		t.Errorf("%+v", got)
	}
	if theirs, err := b.History(t.Context(), uuid.New(), o.ID); err != nil || len(theirs) != 0 {
		t.Errorf("another tenant reads %+v, %v", theirs, err)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t, orders.Config{})
	tenant := uuid.New()
	o := b.create(t, tenant)
	for range 101 {
		b.walk(t, tenant, o.ID, orders.Assigning, orders.Created)
	}
	got, err := b.History(t.Context(), tenant, o.ID)
	if err != nil || len(got) != 200 || got[199].State != orders.Created {
		t.Errorf("%d changes, %v", len(got), err)
	}
}
