package orders

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// afterPickUp is written apart from the table on purpose: it is the rule the
// table must obey, not a copy of it.
var afterPickUp = []State{PickedUp, DeliveryOngoing, ArrivedAtCustomer, Delivered, Failed, Returning, Returned}

func TestAnyWalkStaysOnTheGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at, pickedUp := Created, false
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			m := Move{
				To:    rapid.SampledFrom(States()).Draw(t, "to"),
				Actor: rapid.SampledFrom([]Actor{Merchant, Courier, System}).Draw(t, "actor"),
			}
			to := m.To
			if err := guard(at, m); err != nil {
				requireForbidden(t, err, at, m)
				continue
			}
			requireStep(t, at, to, pickedUp)
			at, pickedUp = to, pickedUp || to == PickedUp
		}
	})
}

func requireForbidden(t *rapid.T, err error, from State, m Move) {
	to := m.To
	var f *ForbiddenTransition
	if !errors.As(err, &f) {
		t.Fatalf("%s → %s: want a ForbiddenTransition, got %v", from, to, err)
	}
	if f.From != from || f.To != to || f.Actor != m.Actor || !slices.Equal(f.Allowed, Allowed(from, m.Actor)) || slices.Contains(f.Allowed, to) {
		t.Fatalf("%s → %s: error says %+v", from, to, f)
	}
}

func requireStep(t *rapid.T, from, to State, pickedUp bool) {
	if slices.Contains(afterPickUp, to) != (pickedUp || to == PickedUp) {
		t.Fatalf("%s → %s with picked up = %v", from, to, pickedUp)
	}
	if to == Cancelled && pickedUp {
		t.Fatalf("cancelled after pick-up, from %s", from)
	}
	if (to == Returning) != (from == Failed) {
		t.Fatalf("%s → %s: only a failed order returns, and it does nothing else", from, to)
	}
	if (to == Returned) != (from == Returning) {
		t.Fatalf("%s → %s", from, to)
	}
}

func TestEveryStateIsReachableAndEveryStoryCanEnd(t *testing.T) {
	reached := reachable(Created)
	for _, s := range States() {
		if !reached[s] {
			t.Errorf("%s cannot be reached", s)
		}
		end := reachable(s)
		if !end[Delivered] && !end[Cancelled] && !end[Returned] {
			t.Errorf("%s has no end", s)
		}
		if to := onward(s); slices.Contains(to, s) {
			t.Errorf("%s leads to itself", s)
		}
		if s.Ended() != (len(onward(s)) == 0) {
			t.Errorf("%s: ended %v, leads to %v", s, s.Ended(), onward(s))
		}
	}
}

// onward is where anybody may take an order.
func onward(from State) (to []State) {
	for _, by := range []Actor{Merchant, Courier, System} {
		to = append(to, Allowed(from, by)...)
	}
	return to
}

func reachable(from State) map[State]bool {
	seen, todo := map[State]bool{from: true}, []State{from}
	for len(todo) > 0 {
		for _, s := range onward(todo[0]) {
			if !seen[s] {
				seen[s], todo = true, append(todo, s)
			}
		}
		todo = todo[1:]
	}
	return seen
}

func TestUnknownStateLeadsNowhereAndDoesNotParse(t *testing.T) {
	for _, name := range []string{"", "UNKNOWN", "created", "CREATED "} {
		if _, ok := ParseState(name); ok {
			t.Errorf("%q parsed", name)
		}
		if got := onward(State(name)); got != nil {
			t.Errorf("%q leads to %v", name, got)
		}
	}
}

// rules is who may move an order, written from the plan and not from the table:
// for each state what each actor may make of it.
var rules = map[State]map[Actor][]State{
	Created:           {System: {Assigning, Unassignable}, Merchant: {Cancelled}},
	Assigning:         {System: {Assigned, Created, Unassignable}, Merchant: {Cancelled}},
	Unassignable:      {Merchant: {Created, Cancelled}},
	Assigned:          {System: {Created, Unassignable}, Merchant: {PickupOngoing, Cancelled}, Courier: {PickupOngoing}},
	PickupOngoing:     {System: {Created, Unassignable}, Merchant: {ArrivedAtMerchant, Cancelled}, Courier: {ArrivedAtMerchant}},
	ArrivedAtMerchant: {System: {Created, Unassignable}, Merchant: {PickedUp, Cancelled}, Courier: {PickedUp}},
	PickedUp:          {Merchant: {DeliveryOngoing, Failed}, Courier: {DeliveryOngoing, Failed}},
	DeliveryOngoing:   {Merchant: {ArrivedAtCustomer, Failed}, Courier: {ArrivedAtCustomer, Failed}},
	ArrivedAtCustomer: {Merchant: {Delivered, Failed}, Courier: {Delivered, Failed}},
	Failed:            {Merchant: {Returning}, Courier: {Returning}},
	Returning:         {Merchant: {Returned}},
}

func TestEveryStateActorAndTarget(t *testing.T) {
	for _, from := range States() {
		for _, by := range []Actor{Merchant, Courier, System, "", "STRANGER"} {
			allowed := rules[from][by]
			if got := Allowed(from, by); !sameStates(got, allowed) {
				t.Errorf("%s may take %s to %v, want %v", by, from, got, allowed)
			}
			for _, to := range States() {
				err := guard(from, Move{To: to, Actor: by})
				if (err == nil) != slices.Contains(allowed, to) {
					t.Errorf("%s → %s by %s: %v", from, to, by, err)
				}
				var f *ForbiddenTransition
				if err != nil && (!errors.As(err, &f) || !sameStates(f.Allowed, allowed)) {
					t.Errorf("%s → %s by %s is told %v", from, to, by, err)
				}
			}
		}
	}
}

func sameStates(a, b []State) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func TestNobodyChangesTheTableFromOutside(t *testing.T) {
	Steps()[0].By[0], Steps()[0].To = Courier, Delivered
	if got := Allowed(Created, Courier); got != nil {
		t.Errorf("a courier may now take CREATED to %v", got)
	}
}

func TestEveryStateHasItsNameInOpenDelivery(t *testing.T) {
	known := []string{
		"PENDING", "ACCEPTED", "REJECTED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "ORDER_PICKED", "DELIVERY_ONGOING",
		"ARRIVED_AT_CUSTOMER", "ORDER_DELIVERED", "RETURNING_TO_MERCHANT", "RETURNED_TO_MERCHANT", "DELIVERY_FINISHED", "CANCELLED",
	}
	for _, s := range States() {
		if !slices.Contains(known, OpenDelivery(s)) {
			t.Errorf("%s is %q", s, OpenDelivery(s))
		}
	}
	if got := OpenDelivery("EATEN"); got != "" {
		t.Errorf("no state is %q", got)
	}
}
