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
			to := rapid.SampledFrom(States()).Draw(t, "to")
			err := guard(at, to)
			if err != nil {
				requireForbidden(t, err, at, to)
				continue
			}
			requireStep(t, at, to, pickedUp)
			at, pickedUp = to, pickedUp || to == PickedUp
		}
	})
}

func requireForbidden(t *rapid.T, err error, from, to State) {
	var f *ForbiddenTransition
	if !errors.As(err, &f) {
		t.Fatalf("%s → %s: want a ForbiddenTransition, got %v", from, to, err)
	}
	if f.From != from || f.To != to || !slices.Equal(f.Allowed, Allowed(from)) || slices.Contains(f.Allowed, to) {
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
		if to := Allowed(s); slices.Contains(to, s) {
			t.Errorf("%s leads to itself", s)
		}
	}
}

func reachable(from State) map[State]bool {
	seen, todo := map[State]bool{from: true}, []State{from}
	for len(todo) > 0 {
		for _, s := range Allowed(todo[0]) {
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
		if got := Allowed(State(name)); got != nil {
			t.Errorf("%q leads to %v", name, got)
		}
	}
}
