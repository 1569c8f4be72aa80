package orders_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
)

func (s saga) asks(why contracts.ReleaseAsk) contracts.CourierReleaseAsked {
	return contracts.CourierReleaseAsked{OrderID: s.reserved.OrderID, Attempt: s.reserved.Attempt, CourierID: s.reserved.CourierID, Reason: why}
}

// A courier who declines while the goods are handed over: the order is picked up
// or looks for another courier, as whichever came first says.
func TestAnAskToLetGoRacingThePickupHasOneWinner(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	won := map[orders.State]int{}
	for range 40 {
		o, s := b.assigned(t, tenant)
		b.walk(t, tenant, o.ID, orders.PickupOngoing, orders.ArrivedAtMerchant)
		var moved error
		var all sync.WaitGroup
		all.Go(func() {
			if err := b.hear(t.Context(), tenant, s.asks(contracts.ReleaseAskDeclined)); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			_, moved = b.Transition(t.Context(), tenant, o.ID, orders.Move{To: orders.PickedUp, Actor: orders.Merchant})
		})
		all.Wait()
		got := b.get(t, tenant, o.ID)
		won[got.State]++
		var forbidden *orders.ForbiddenTransition
		switch {
		case moved == nil && got.State == orders.PickedUp && got.Attempt == 1 && got.Courier == o.Courier:
		case errors.As(moved, &forbidden) && got.State == orders.Created && got.Attempt == 2 && got.Courier == uuid.Nil:
		default:
			t.Errorf("%s in attempt %d, the pickup: %v", got.State, got.Attempt, moved)
		}
		b.give(t, tenant, s.asks(contracts.ReleaseAskDeclined)) // again: it changes nothing
		if again := b.get(t, tenant, o.ID); again.Version != got.Version {
			t.Errorf("asked again it goes from %s to %s", got.State, again.State)
		}
		b.requireGapless(t, got)
	}
	t.Logf("%v", won)
}

// The deadline's end and what meets it come at once: the order is assigned and
// stays so, or looks again, and what came second moves nothing.
func TestADeadlineRacingTheAssignmentHasOneWinner(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	won := map[orders.State]int{}
	for range 40 {
		o := b.create(t, tenant)
		s := newSaga(o.ID, 1)
		b.give(t, tenant, s.reserved, s.billed)
		var all sync.WaitGroup
		for _, told := range []event.Data{s.asks(contracts.ReleaseAskExpired), s.notified} {
			all.Go(func() {
				if err := b.hear(t.Context(), tenant, told); err != nil {
					t.Errorf("%T: %v", told, err)
				}
			})
		}
		all.Wait()
		got := b.get(t, tenant, o.ID)
		won[got.State]++
		switch {
		case got.State == orders.Assigned && got.Attempt == 1 && got.Courier == s.reserved.CourierID:
		case got.State == orders.Created && got.Attempt == 2 && got.Courier == uuid.Nil:
		default:
			t.Errorf("%s in attempt %d", got.State, got.Attempt)
		}
		if types := b.requireGapless(t, got); slices.Contains(types, "OrderAssigned") != (got.State == orders.Assigned) {
			t.Errorf("%s after %v", got.State, types)
		}
	}
	t.Logf("%v", won)
}

func TestADeadlineIsMetByAnOrderThatIsAssigned(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o, s := b.assigned(t, tenant)
	b.give(t, tenant, s.asks(contracts.ReleaseAskExpired))
	if got := b.get(t, tenant, o.ID); got.State != orders.Assigned || got.Courier != o.Courier {
		t.Errorf("an assigned order is %s", got.State)
	}
	b.give(t, tenant, s.asks(contracts.ReleaseAskReassigned))
	got := b.get(t, tenant, o.ID)
	if got.State != orders.Created || got.Attempt != 2 {
		t.Errorf("reassigned it is %s in attempt %d", got.State, got.Attempt)
	}
	next := newSaga(o.ID, 2)
	b.give(t, tenant, next.reserved, s.asks(contracts.ReleaseAskExpired)) // of the attempt that is over
	if got = b.get(t, tenant, o.ID); got.State != orders.Assigning {
		t.Errorf("an old deadline made it %s", got.State)
	}
	b.give(t, tenant, next.asks(contracts.ReleaseAskExpired), next.billed, next.notified)
	if got = b.get(t, tenant, o.ID); got.State != orders.Created || got.Attempt != 3 {
		t.Errorf("past the deadline it is %s in attempt %d", got.State, got.Attempt)
	}
	// Before its reservation was heard of, and in the last attempt.
	b.give(t, tenant, newSaga(o.ID, 3).asks(contracts.ReleaseAskExpired))
	if got = b.get(t, tenant, o.ID); got.State != orders.Unassignable || got.Attempt != 3 {
		t.Errorf("in the end it is %s in attempt %d", got.State, got.Attempt)
	}
	b.requireGapless(t, got)
}
