// Package faults breaks the delivery product on purpose: named faults that an
// operator sets and clears while it runs, to see it compensate, wait and mend.
//
// Promise: a fault that is set, cleared or over is so in every process within a
// second of it, where [Flags.Run] runs and the database answers. What a
// percentage strikes is decided by a hash of the setting and the thing struck:
// the same event is decided the same on each retry and in every process, until
// the fault is set anew. With nothing set, asking costs no round trip.
//
// Limits: faults are the platform's, not a merchant's; whoever may set one sets
// it for all. While the database cannot be reached a process keeps to what it
// read last, up to the end that a fault was given. Before its first look nothing
// is on.
package faults

import (
	"fmt"
	"strings"
)

// The faults.
const (
	BillingFailure      = "billing-failure"
	NotificationFailure = "notification-failure"
	CompensationFailure = "compensation-failure"
	SlowConsumer        = "slow-consumer"
	PoisonEvent         = "poison-event"
	Webhook500          = "webhook-500"
	BrokerDown          = "broker-down"
)

// Unit is what a fault's value counts.
type Unit string

// The units.
const (
	Percent Unit = "%"      // of what may be struck
	Millis  Unit = "ms"     // of delay
	Events  Unit = "events" // still to come
	Switch  Unit = "switch" // 0 or 1
)

// Fault is a fault that there is, set or not.
type Fault struct {
	Name string `json:"name"`
	Unit Unit   `json:"unit"`
	Max  int64  `json:"max"` // the least is 0, which is off
	Does string `json:"does"`
}

// Bounds of values. A delay stays well below the time that a handler has, and
// the poisoned events are kept one by one.
const (
	maxDelay  = 5000 // ms
	maxPoison = 1000 // events
)

// Known lists the faults, sorted by name.
func Known() []Fault {
	return []Fault{
		{BillingFailure, Percent, 100, "the platform's fee of an attempt cannot be billed"},
		{BrokerDown, Switch, 1, "the broker cannot be reached"},
		{CompensationFailure, Percent, 100, "voiding a fee fails, at each try"},
		{NotificationFailure, Percent, 100, "the courier of an attempt cannot be told"},
		{PoisonEvent, Events, maxPoison, "the next events of billing can never be handled"},
		{SlowConsumer, Millis, maxDelay, "billing and dispatch take longer for each event"},
		{Webhook500, Percent, 100, "a merchant's webhook answers 500"},
	}
}

func find(name string) (Fault, error) {
	for _, f := range Known() {
		if f.Name == name {
			return f, nil
		}
	}
	return Fault{}, &UnknownError{name}
}

// UnknownError is a name that no fault has.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	known := Known()
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.Name
	}
	return fmt.Sprintf("no fault is named %.64q: there are %s", e.Name, strings.Join(names, ", "))
}

// InvalidError is a value or a time that a fault does not take.
type InvalidError struct {
	Field  string // "value" or "for"
	Reason string
}

func (e *InvalidError) Error() string { return e.Reason }
