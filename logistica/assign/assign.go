// Package assign declares what the modules do together to give an order its
// courier, and what they do when it stands still.
//
// Nobody carries the assignment out: orders, couriers, billing and dispatch
// react to each other's events. Declared as a saga it is watched: each step has
// a time, what does not come about is asked for, and what stays undone waits for
// an operator in sight.
package assign

import (
	"time"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/saga"
)

// Name of the saga, as lists and metrics show it.
const Name = "assign-order-to-courier"

// Config is how long the steps may take; its zero value works.
type Config struct {
	// Search is how long an order may look for a courier, 15 minutes if zero: it
	// must be longer than couriers look, who then say so themselves.
	Search time.Duration
	// Step is for each of the others, and for undoing one; 30 s if zero.
	Step time.Duration
	// Asks is how often a step is asked for before an operator is, 5 if zero.
	Asks int
}

// Saga is the declaration. A round is an attempt: each of an order's attempts is
// completed or compensated by itself.
func Saga(cfg Config) saga.Saga {
	if cfg.Search == 0 {
		cfg.Search = 15 * time.Minute
	}
	if cfg.Step == 0 {
		cfg.Step = 30 * time.Second
	}
	step := func(s saga.Step) saga.Step {
		s.Within, s.Pause, s.Asks = cfg.Step, cfg.Step, cfg.Asks
		return s
	}
	reserve := step(saga.Step{
		Name: "reserve",
		Done: saga.On(func(e event.Of[contracts.CourierReserved]) int { return int(e.Data.Attempt) }),
		// One that is not final says that the search goes on.
		Failed: saga.On(func(e event.Of[contracts.CourierReservationFailed]) int {
			if !e.Data.Final {
				return saga.NoRound
			}
			return int(e.Data.Attempt)
		}),
		Undone: saga.On(func(e event.Of[contracts.CourierReleased]) int { return int(e.Data.Attempt) }),
	})
	reserve.Within = cfg.Search
	return saga.Saga{
		Name:  Name,
		Start: saga.Either(saga.On[contracts.OrderCreated](), saga.On(again)),
		Abort: saga.On(cancelled),
		Steps: []saga.Step{
			reserve,
			step(saga.Step{
				Name:   "bill",
				Done:   saga.On(func(e event.Of[contracts.PlatformFeeBilled]) int { return int(e.Data.Attempt) }),
				Failed: saga.On(func(e event.Of[contracts.PlatformFeeFailed]) int { return int(e.Data.Attempt) }),
				Undone: saga.On(func(e event.Of[contracts.PlatformFeeVoided]) int { return int(e.Data.Attempt) }),
			}),
			step(saga.Step{
				Name:   "notify",
				Done:   saga.On(func(e event.Of[contracts.CourierNotified]) int { return int(e.Data.Attempt) }),
				Failed: saga.On(func(e event.Of[contracts.CourierNotificationFailed]) int { return int(e.Data.Attempt) }),
			}),
			step(saga.Step{
				Name: "assign",
				Done: saga.On(func(e event.Of[contracts.OrderAssigned]) int { return int(e.Data.Attempt) }),
			}),
		},
	}
}

// again is the round that begins where an order looks for another courier.
func again(e event.Of[contracts.OrderStatusChanged]) int {
	if e.Data.To != contracts.OrderStateCreated || e.Data.Attempt == nil {
		return saga.NoRound
	}
	return int(*e.Data.Attempt)
}

// cancelled is the round that a cancellation ends.
func cancelled(e event.Of[contracts.OrderStatusChanged]) int {
	switch {
	case e.Data.To != contracts.OrderStateCancelled:
		return saga.NoRound
	case e.Data.Attempt == nil:
		return saga.EveryRound
	}
	return int(*e.Data.Attempt)
}
