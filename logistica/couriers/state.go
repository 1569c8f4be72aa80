package couriers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waybillhq/waybill/logistica/contracts"
)

// State is a courier's duty. The set is closed: see [States].
type State string

// The states of a courier. RESERVED and BUSY come and go with an order; the
// others are the courier's own choice.
const (
	Offline   State = "OFFLINE"
	Available State = "AVAILABLE"
	Reserved  State = "RESERVED" // for an order that is not assigned yet
	Busy      State = "BUSY"
	Paused    State = "PAUSED"
)

// States lists every state.
func States() []State { return []State{Offline, Available, Reserved, Busy, Paused} }

// ParseState reads a state by name; ok is false for a name outside the set.
func ParseState(name string) (s State, ok bool) {
	s = State(name)
	return s, slices.Contains(States(), s)
}

// Allowed is where a courier may go from s by their own word: nowhere while an
// order is theirs.
func Allowed(from State) []State {
	switch from {
	case Offline:
		return []State{Available}
	case Available:
		return []State{Paused, Offline}
	case Paused:
		return []State{Available, Offline}
	case Reserved, Busy:
		return nil
	}
	return nil
}

// ForbiddenStatus refuses a duty that a courier cannot choose now.
type ForbiddenStatus struct {
	From, To State
	Allowed  []State // from From
}

func (e *ForbiddenStatus) Error() string {
	switch e.From {
	case Reserved, Busy:
		return fmt.Sprintf("a courier who is %s has an order: become %s when it has ended, or decline it first", e.From, e.To)
	case Offline, Available, Paused:
	}
	names := make([]string, len(e.Allowed))
	for i, s := range e.Allowed {
		names[i] = string(s)
	}
	return fmt.Sprintf("a courier who is %s cannot become %s, only %s", e.From, e.To, strings.Join(names, ", "))
}

// VersionConflict refuses a change that expected another version.
type VersionConflict struct {
	Expected, Current int64
	State             State
}

func (e *VersionConflict) Error() string {
	return fmt.Sprintf("courier is %s at version %d, not at version %d", e.State, e.Current, e.Expected)
}

// guard lets a courier choose a duty or says why not.
func guard(from, to State) error {
	if allowed := Allowed(from); !slices.Contains(allowed, to) {
		return &ForbiddenStatus{From: from, To: to, Allowed: allowed}
	}
	return nil
}

// Vehicle is what a courier rides: MOTORBIKE, BICYCLE or CAR.
type Vehicle = contracts.VehicleType
