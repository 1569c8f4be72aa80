package orders

import (
	"fmt"
	"slices"
	"strings"
)

// State is where an order stands. The set is closed: see [States].
type State string

// The states of an order, in the order a delivery goes through them.
const (
	Created           State = "CREATED"
	Assigning         State = "ASSIGNING"
	Assigned          State = "ASSIGNED"
	Unassignable      State = "UNASSIGNABLE"
	PickupOngoing     State = "PICKUP_ONGOING"
	ArrivedAtMerchant State = "ARRIVED_AT_MERCHANT"
	PickedUp          State = "PICKED_UP"
	DeliveryOngoing   State = "DELIVERY_ONGOING"
	ArrivedAtCustomer State = "ARRIVED_AT_CUSTOMER"
	Delivered         State = "DELIVERED"
	Cancelled         State = "CANCELLED"
	Failed            State = "FAILED"
	Returning         State = "RETURNING"
	Returned          State = "RETURNED"
)

// States lists every state.
func States() []State {
	return []State{
		Created, Assigning, Assigned, Unassignable, PickupOngoing, ArrivedAtMerchant, PickedUp,
		DeliveryOngoing, ArrivedAtCustomer, Delivered, Cancelled, Failed, Returning, Returned,
	}
}

// ParseState reads a state by name; ok is false for a name outside the set.
func ParseState(name string) (s State, ok bool) {
	s = State(name)
	return s, slices.Contains(States(), s)
}

// ForbiddenTransition refuses a transition that the state machine does not have,
// or not for who asked.
type ForbiddenTransition struct {
	From, To State
	Actor    Actor
	Allowed  []State // from From, for Actor
}

func (e *ForbiddenTransition) Error() string {
	if e.From.Ended() {
		return fmt.Sprintf("an order that is %s stays so: it cannot become %s", e.From, e.To)
	}
	who := strings.ToLower(string(e.Actor))
	if len(e.Allowed) == 0 {
		return fmt.Sprintf("an order that is %s cannot become %s by the %s: others move it on from here, follow its events", e.From, e.To, who)
	}
	names := make([]string, len(e.Allowed))
	for i, s := range e.Allowed {
		names[i] = string(s)
	}
	return fmt.Sprintf("an order that is %s cannot become %s by the %s, only %s", e.From, e.To, who, strings.Join(names, ", "))
}
