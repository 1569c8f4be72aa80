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

// Allowed is where an order may go from s, nothing once its story has ended.
//
// Until the goods are picked up an order may be cancelled; afterwards somebody
// holds them, so it can only fail and bring them back.
func Allowed(from State) []State {
	switch from {
	case Created:
		return []State{Assigning, Cancelled}
	case Assigning:
		return []State{Assigned, Created, Unassignable, Cancelled}
	case Assigned:
		return []State{PickupOngoing, Cancelled}
	case Unassignable:
		return []State{Cancelled}
	case PickupOngoing:
		return []State{ArrivedAtMerchant, Cancelled}
	case ArrivedAtMerchant:
		return []State{PickedUp, Cancelled}
	case PickedUp:
		return []State{DeliveryOngoing, Failed}
	case DeliveryOngoing:
		return []State{ArrivedAtCustomer, Failed}
	case ArrivedAtCustomer:
		return []State{Delivered, Failed}
	case Failed:
		return []State{Returning}
	case Returning:
		return []State{Returned}
	case Delivered, Cancelled, Returned:
		return nil
	}
	return nil
}

// ForbiddenTransition refuses a transition the state machine does not have.
type ForbiddenTransition struct {
	From, To State
	Allowed  []State // from From
}

func (e *ForbiddenTransition) Error() string {
	if len(e.Allowed) == 0 {
		return fmt.Sprintf("an order that is %s stays so: it cannot become %s", e.From, e.To)
	}
	names := make([]string, len(e.Allowed))
	for i, s := range e.Allowed {
		names[i] = string(s)
	}
	return fmt.Sprintf("an order that is %s cannot become %s, only %s", e.From, e.To, strings.Join(names, ", "))
}

// guard lets a transition pass or says why not.
func guard(from, to State) error {
	if allowed := Allowed(from); !slices.Contains(allowed, to) {
		return &ForbiddenTransition{From: from, To: to, Allowed: allowed}
	}
	return nil
}

// Actor is who moves an order.
type Actor string

// Who may move an order.
const (
	Merchant Actor = "MERCHANT"
	Courier  Actor = "COURIER"
	System   Actor = "SYSTEM"
)
