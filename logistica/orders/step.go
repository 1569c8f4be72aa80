package orders

import "slices"

// Actor is who moves an order.
type Actor string

// Who may move an order.
const (
	Merchant Actor = "MERCHANT"
	Courier  Actor = "COURIER"
	System   Actor = "SYSTEM" // the saga that finds a courier, by its events
)

// Step is one transition of the state machine and who may make it.
type Step struct {
	From, To State
	By       []Actor
}

// steps is the state machine: the guard, what the API offers and its
// documentation all read this one table.
//
// Until the goods are picked up an order may be cancelled, or go back and look
// for another courier; afterwards somebody holds them, so it can only fail and
// bring them back. Whatever a courier may do the merchant may do for them: a
// phone call happens.
var steps = func() (all []Step) {
	add := func(from State, by []Actor, to ...State) {
		for _, t := range to {
			all = append(all, Step{from, t, by})
		}
	}
	system, merchant, carrying := []Actor{System}, []Actor{Merchant}, []Actor{Courier, Merchant}
	add(Created, system, Assigning, Unassignable)
	add(Created, merchant, Cancelled)
	add(Assigning, system, Assigned, Created, Unassignable)
	add(Assigning, merchant, Cancelled)
	add(Unassignable, merchant, Created, Cancelled)
	for _, on := range [][2]State{{Assigned, PickupOngoing}, {PickupOngoing, ArrivedAtMerchant}, {ArrivedAtMerchant, PickedUp}} {
		add(on[0], carrying, on[1])
		add(on[0], merchant, Cancelled)
		add(on[0], system, Created, Unassignable)
	}
	add(PickedUp, carrying, DeliveryOngoing, Failed)
	add(DeliveryOngoing, carrying, ArrivedAtCustomer, Failed)
	add(ArrivedAtCustomer, carrying, Delivered, Failed)
	add(Failed, carrying, Returning)
	add(Returning, merchant, Returned)
	return all
}()

// Steps is every transition there is, in the order of a delivery.
func Steps() []Step {
	all := slices.Clone(steps)
	for i := range all {
		all[i].By = slices.Clone(all[i].By)
	}
	return all
}

// Allowed is where actor may take an order from a state; nothing once its story
// has ended, or while it is for others to move.
func Allowed(from State, by Actor) (to []State) {
	for _, s := range steps {
		if s.From == from && slices.Contains(s.By, by) {
			to = append(to, s.To)
		}
	}
	return to
}

// Ended reports whether an order's story is over: nobody moves it any more.
func (s State) Ended() bool {
	return !slices.ContainsFunc(steps, func(step Step) bool { return step.From == s })
}

// guard lets a transition pass or says why not.
func guard(from State, m Move) error {
	if allowed := Allowed(from, m.Actor); !slices.Contains(allowed, m.To) {
		return &ForbiddenTransition{From: from, To: m.To, Actor: m.Actor, Allowed: allowed}
	}
	return nil
}
