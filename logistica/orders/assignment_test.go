package orders_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
)

func TestTheSagaAssignsACourier(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	s := newSaga(o.ID, 1)
	for i, step := range []struct {
		told  event.Data
		state orders.State
	}{
		{s.waits, orders.Created},
		{s.reserved, orders.Assigning},
		{s.billed, orders.Assigning},
		{s.notified, orders.Assigned},
		{s.notified, orders.Assigned},
		{s.reserved, orders.Assigned},
		{s.billed, orders.Assigned},
	} {
		b.give(t, tenant, step.told)
		if o = b.get(t, tenant, o.ID); o.State != step.state {
			t.Fatalf("step %d, %T: %s", i, step.told, o.State)
		}
	}
	id, amount, currency, standing := o.Assignment.Fee()
	if o.Courier != s.reserved.CourierID || o.Attempt != 1 || *o.DistanceM != 4200 || o.Assignment.AssignedAt == nil ||
		!o.Assignment.PickupETA.Equal(s.reserved.PickupETA) || id != s.billed.FeeID || amount != 150 || currency != "BRL" || !standing {
		t.Errorf("order %+v\nassignment %+v", o, o.Assignment)
	}
	if got := b.requireGapless(t, o); !slices.Equal(got, []string{"OrderCreated", "OrderStatusChanged", "OrderStatusChanged", "OrderAssigned"}) {
		t.Errorf("said %v", got)
	}
	list := b.events(t, o.ID)
	want := contracts.OrderAssigned{
		OrderID: o.ID, Version: 4, CourierID: s.reserved.CourierID, Attempt: 1, FeeID: s.billed.FeeID,
		PickupETA: s.reserved.PickupETA, DeliveryETA: s.reserved.DeliveryETA,
	}
	if got := decode[contracts.OrderAssigned](t, list[3].Body); got != want {
		t.Errorf("said %+v\nwant %+v", got, want)
	}
	if got := decode[contracts.OrderStatusChanged](t, list[1].Body); got.Attempt == nil || *got.Attempt != 1 || got.Actor != contracts.ActorSystem {
		t.Errorf("said %+v", got)
	}
}

// What other modules say of an order comes from several topics, so in any order,
// and any of it may come twice.
func TestOrdersEndTheSameWhateverComesFirst(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{Attempts: 2}), event.NewID()
	for range 40 {
		o := b.create(t, tenant)
		first, second := newSaga(o.ID, 1), newSaga(o.ID, 2)
		told := []event.Data{
			first.waits, first.reserved, first.billed, first.notified, first.released, first.voided,
			second.reserved, second.billed, second.notified, second.reserved, first.released,
		}
		b.give(t, tenant, shuffled(told)...)
		got := b.get(t, tenant, o.ID)
		_, _, _, standing := got.Assignment.Fee()
		if got.State != orders.Assigned || got.Attempt != 2 || got.Courier != second.reserved.CourierID || !standing {
			t.Fatalf("%+v after %T", got, told)
		}
		b.requireGapless(t, got)
	}
}

func TestAReleasedCourierLeadsToAnotherAttemptUntilTheyAreUsedUp(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	for attempt, from := range []orders.State{orders.Assigned, orders.PickupOngoing, orders.ArrivedAtMerchant} {
		s := newSaga(o.ID, int32(attempt+1))
		b.give(t, tenant, s.reserved, s.billed, s.notified)
		for _, to := range []orders.State{orders.PickupOngoing, orders.ArrivedAtMerchant} {
			if b.get(t, tenant, o.ID).State != from {
				b.walk(t, tenant, o.ID, to)
			}
		}
		b.give(t, tenant, s.released, s.voided)
		got := b.get(t, tenant, o.ID)
		if got.Courier != uuid.Nil || got.DistanceM != nil {
			t.Errorf("attempt %d leaves %+v", attempt+1, got)
		}
		if last := attempt == 2; last && (got.State != orders.Unassignable || got.Attempt != 3) ||
			!last && (got.State != orders.Created || got.Attempt != int32(attempt+2)) {
			t.Fatalf("attempt %d from %s leads to %s, attempt %d", attempt+1, from, got.State, got.Attempt)
		}
		list := b.events(t, o.ID)
		e := decode[contracts.OrderStatusChanged](t, list[len(list)-1].Body)
		if *e.Reason != "DECLINED" || *e.Attempt != got.Attempt {
			t.Errorf("said %+v", e)
		}
	}

	// The merchant asks again: all tries anew, under numbers that go on.
	got := b.walk(t, tenant, o.ID, orders.Created)
	for attempt := int32(4); attempt <= 6; attempt++ {
		if got.State != orders.Created || got.Attempt != attempt {
			t.Fatalf("asked again: %s, attempt %d, want %d", got.State, got.Attempt, attempt)
		}
		s := newSaga(o.ID, attempt)
		b.give(t, tenant, s.reserved, s.released)
		got = b.get(t, tenant, o.ID)
	}
	if got.State != orders.Unassignable || got.Attempt != 6 {
		t.Errorf("in the end %s, attempt %d", got.State, got.Attempt)
	}
	b.requireGapless(t, got)
}

func TestASearchThatEndsWithoutACourier(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	s := newSaga(o.ID, 1)
	b.give(t, tenant, s.waits, s.failed, s.failed)
	got := b.get(t, tenant, o.ID)
	if got.State != orders.Unassignable || got.Attempt != 1 || got.Version != 2 {
		t.Errorf("%+v", got)
	}
	if got = b.walk(t, tenant, o.ID, orders.Created); got.Attempt != 2 {
		t.Errorf("tried again as attempt %d", got.Attempt)
	}
	b.give(t, tenant, s.failed) // of the attempt that is over
	if got = b.get(t, tenant, o.ID); got.State != orders.Created {
		t.Errorf("an old failure made it %s", got.State)
	}
}

func TestAVoidedFeeAssignsNobody(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	for range 10 {
		o := b.create(t, tenant)
		s := newSaga(o.ID, 1)
		b.give(t, tenant, s.voided)
		b.give(t, tenant, shuffled([]event.Data{s.reserved, s.notified, s.billed})...)
		got := b.get(t, tenant, o.ID)
		if _, _, _, standing := got.Assignment.Fee(); got.State != orders.Assigning || standing {
			t.Errorf("%s, fee stands %v", got.State, standing)
		}
	}
}

func TestAFactOfNoOrderIsLoud(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o := b.create(t, tenant)
	for name, err := range map[string]error{
		"unknown":          b.hear(t.Context(), tenant, newSaga(event.NewID(), 1).reserved),
		"another tenant's": b.hear(t.Context(), event.NewID(), newSaga(o.ID, 1).reserved),
	} {
		if !errors.Is(err, orders.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"no attempt": b.hear(t.Context(), tenant, newSaga(o.ID, 0).reserved),
	} {
		if err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if got := b.get(t, tenant, o.ID); got.State != orders.Created || got.Assignment != nil {
		t.Errorf("left %+v", got)
	}
}

// Whichever transaction commits first decides; the other ends harmless.
func TestACancellationRacesTheAssignment(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	won := map[orders.State]int{}
	for range 60 {
		o := b.create(t, tenant)
		s := newSaga(o.ID, 1)
		var all sync.WaitGroup
		all.Go(func() {
			for _, told := range []event.Data{s.reserved, s.billed, s.notified} {
				if err := b.hear(t.Context(), tenant, told); err != nil {
					t.Errorf("%T: %v", told, err)
				}
			}
		})
		all.Go(func() {
			if _, err := b.Transition(t.Context(), tenant, o.ID, orders.Move{To: orders.Cancelled, Actor: orders.Merchant}); err != nil {
				t.Error(err) // a merchant may cancel at every point of it
			}
		})
		all.Wait()
		got := b.get(t, tenant, o.ID)
		if got.State != orders.Cancelled {
			t.Fatalf("ends %s", got.State)
		}
		types := b.requireGapless(t, got)
		if slices.Contains(types, "OrderAssigned") {
			won[orders.Assigned]++
		} else {
			won[orders.Cancelled]++
		}
		list := b.events(t, o.ID)
		if last := decode[contracts.OrderStatusChanged](t, list[len(list)-1].Body); last.To != contracts.OrderStateCancelled {
			t.Errorf("something came after the cancellation: %v", types)
		}
		b.give(t, tenant, s.released, s.voided) // the compensation, which finds an order that has ended
		if after := b.get(t, tenant, o.ID); after.Version != got.Version {
			t.Errorf("the compensation moved it: %+v", after)
		}
	}
	t.Logf("%v", won)
}

func TestVersionsHaveNoGapsUnderConcurrency(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	var ids []uuid.UUID
	for range 8 {
		ids = append(ids, b.create(t, tenant).ID)
	}
	var all sync.WaitGroup
	for _, id := range ids {
		var told []event.Data
		for attempt := range int32(3) {
			s := newSaga(id, attempt+1)
			told = append(told, s.reserved, s.billed, s.notified, s.released, s.voided)
		}
		shuffled(told)
		for part := range slices.Chunk(told, 5) { // three topics, each with its own worker
			all.Go(func() {
				for _, data := range part {
					if err := b.hear(t.Context(), tenant, data); err != nil {
						t.Errorf("%T: %v", data, err)
					}
				}
			})
		}
		all.Go(func() {
			for range 6 {
				to := []orders.State{orders.PickupOngoing, orders.Created, orders.ArrivedAtMerchant}[rand.IntN(3)]
				_, err := b.Transition(t.Context(), tenant, id, orders.Move{To: to, Actor: orders.Merchant})
				var forbidden *orders.ForbiddenTransition
				if err != nil && !errors.As(err, &forbidden) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		o := b.get(t, tenant, id)
		b.requireGapless(t, o)
		if o.State != orders.Unassignable && o.State != orders.Created {
			t.Errorf("every courier was released, and it is %s", o.State)
		}
	}
}

func TestAnotherTenantSeesNoAssignment(t *testing.T) {
	t.Parallel()
	b, ours, theirs := newBed(t, orders.Config{}), event.NewID(), event.NewID()
	o, s := b.assigned(t, ours)
	if _, err := b.Get(t.Context(), theirs, o.ID); !errors.Is(err, orders.ErrNotFound) {
		t.Errorf("read: %v", err)
	}
	if _, err := b.ResetCode(t.Context(), theirs, o.ID); !errors.Is(err, orders.ErrNotFound) {
		t.Errorf("reset: %v", err)
	}
	for _, told := range []event.Data{s.released, s.voided} {
		if err := b.hear(t.Context(), theirs, told); !errors.Is(err, orders.ErrNotFound) {
			t.Errorf("%T: %v", told, err)
		}
	}
	list, _, err := b.List(t.Context(), ours, orders.Query{})
	if err != nil || len(list) != 1 || list[0].Assignment == nil || *list[0].Assignment.Courier != s.reserved.CourierID {
		t.Errorf("ours: %+v, %v", list, err)
	}
}

func TestTrackingShowsTheCourierOfTheAttemptThatCounts(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o, s := b.assigned(t, tenant)
	b.assigned(t, tenant) // another, whose data must not mix in
	got, err := b.Track(t.Context(), o.TrackingToken)
	if err != nil || got.Courier != s.reserved.CourierID || got.Vehicle != "MOTORBIKE" || got.Code != o.Code ||
		got.DeliveryETA == nil || !got.DeliveryETA.Equal(s.reserved.DeliveryETA) {
		t.Errorf("%+v, %v", got, err)
	}
	b.give(t, tenant, s.released)
	if got, err = b.Track(t.Context(), o.TrackingToken); err != nil || got.Courier != uuid.Nil || got.DeliveryETA != nil || got.Vehicle != "" {
		t.Errorf("after the release %+v, %v", got, err)
	}
}

func TestChangesPublishNoSecret(t *testing.T) {
	for _, table := range orders.Changes() {
		for _, column := range table.Columns {
			if strings.Contains(column, "code") || column == "tracking_token" || strings.HasPrefix(column, "customer") {
				t.Errorf("%s.%s is published", table.Name, column)
			}
		}
	}
}
