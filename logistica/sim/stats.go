package sim

import (
	"sync/atomic"
	"time"
)

// counters count what happens. The API's answers tell it, not the database.
type counters struct {
	made, cancelled, delivered, failed, returned, skipped atomic.Int64
	accepted, declined, riding, onDuty                    atomic.Int64
	pings, late, again, dropped                           atomic.Int64
	metres                                                atomic.Int64
	requests, throttled, errors                           atomic.Int64
}

// Stats is how a simulation stands.
type Stats struct {
	Seed      uint64    `json:"seed"`
	Speed     float64   `json:"speed"`
	From      time.Time `json:"simulated_from"`
	To        time.Time `json:"simulated_to"`
	Wall      float64   `json:"wall_seconds"`
	Orders    Orders    `json:"orders"`
	Offers    Offers    `json:"offers"`
	Couriers  Riders    `json:"couriers"`
	Pings     Pings     `json:"pings"`
	Requests  int64     `json:"requests"`
	Throttled int64     `json:"throttled"`
	Errors    int64     `json:"errors"`
}

// Orders are counted by what became of them. Skipped ones were never made: the
// product took none for longer than a customer waits.
type Orders struct {
	Made      int64 `json:"made"`
	Active    int64 `json:"active"`
	Delivered int64 `json:"delivered"`
	Failed    int64 `json:"failed"`
	Returned  int64 `json:"returned"`
	Cancelled int64 `json:"cancelled"`
	Skipped   int64 `json:"skipped"`
}

// Offers are what couriers said to what they were offered.
type Offers struct {
	Accepted int64 `json:"accepted"`
	Declined int64 `json:"declined"`
}

// Riders are the couriers.
type Riders struct {
	OnDuty int64   `json:"on_duty"`
	Riding int64   `json:"riding"`
	Km     float64 `json:"km"`
}

// Pings are positions that the product took: all, those among them that were
// held back out of reach, and those sent a second time. Dropped ones were not
// taken in time.
type Pings struct {
	Sent    int64 `json:"sent"`
	Late    int64 `json:"late"`
	Again   int64 `json:"again"`
	Dropped int64 `json:"dropped"`
}

// Stats is how the simulation stands just now.
func (s *Sim) Stats() Stats {
	c := &s.counters
	st := Stats{
		Seed: s.cfg.Seed, Speed: s.cfg.Speed,
		Orders: Orders{
			Made: c.made.Load(), Delivered: c.delivered.Load(), Failed: c.failed.Load(),
			Returned: c.returned.Load(), Cancelled: c.cancelled.Load(), Skipped: c.skipped.Load(),
		},
		Offers:   Offers{c.accepted.Load(), c.declined.Load()},
		Couriers: Riders{c.onDuty.Load(), c.riding.Load(), float64(c.metres.Load()) / 1000},
		Pings:    Pings{c.pings.Load(), c.late.Load(), c.again.Load(), c.dropped.Load()},
		Requests: c.requests.Load(), Throttled: c.throttled.Load(), Errors: c.errors.Load(),
	}
	st.Orders.Active = max(0, st.Orders.Made-st.Orders.Delivered-st.Orders.Returned-st.Orders.Cancelled)
	if clock := s.clock.Load(); clock != nil {
		st.From, st.To, st.Wall = clock.start, clock.now(), time.Since(clock.began).Seconds()
	}
	return st
}
