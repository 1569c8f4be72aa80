package analytics_test

import (
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/projection"
)

// fact is an event before it is encoded.
type fact struct {
	tenant uuid.UUID
	at     time.Time
	data   event.Data
	event  projection.Event
}

// The model reads all facts at once and computes each figure from its
// definition, without adding anything up along the way.

func of(fs []fact, s *uuid.UUID) (out []fact) {
	for _, f := range fs {
		if s == nil || f.tenant == *s {
			out = append(out, f)
		}
	}
	return out
}

func modelStates(fs []fact) map[string]int64 {
	last := map[uuid.UUID]contracts.OrderState{}
	for _, f := range fs {
		switch e := f.data.(type) {
		case contracts.OrderCreated:
			last[e.OrderID] = contracts.OrderStateCreated
		case contracts.OrderStatusChanged:
			last[e.OrderID] = e.To
		}
	}
	out := map[string]int64{}
	for _, s := range last {
		out[string(s)]++
	}
	return out
}

func modelEntered(fs []fact, hour time.Time, state string) (n int64) {
	for _, f := range fs {
		if !f.at.Truncate(time.Hour).Equal(hour) {
			continue
		}
		switch e := f.data.(type) {
		case contracts.OrderCreated:
			if state == "CREATED" {
				n++
			}
		case contracts.OrderStatusChanged:
			if string(e.To) == state {
				n++
			}
		}
	}
	return n
}

func modelCreated(fs []fact, minute time.Time) (n int64) {
	for _, f := range fs {
		if _, made := f.data.(contracts.OrderCreated); made && f.at.Truncate(time.Minute).Equal(minute) {
			n++
		}
	}
	return n
}

type ride struct{ created, promised, assigned, pickedUp, delivered time.Time }

func modelRides(fs []fact) map[uuid.UUID]*ride {
	rides := map[uuid.UUID]*ride{}
	for _, f := range fs {
		switch e := f.data.(type) {
		case contracts.OrderCreated:
			r := &ride{created: f.at}
			if e.PromisedAt != nil {
				r.promised = *e.PromisedAt
			}
			rides[e.OrderID] = r
		case contracts.OrderStatusChanged:
			switch r := rides[e.OrderID]; e.To { //nolint:exhaustive // milestones
			case "ASSIGNED":
				r.assigned = f.at
			case "PICKED_UP":
				r.pickedUp = f.at
			case "DELIVERED":
				r.delivered = f.at
			}
		}
	}
	return rides
}

// modelDelivered is of the deliveries in [from, to).
func modelDelivered(fs []fact, from, to time.Time) (d analytics.Deliveries) {
	var whole, assign, pick, last []int64
	for _, r := range modelRides(fs) {
		if r.delivered.IsZero() || r.delivered.Before(from) || !r.delivered.Before(to) {
			continue
		}
		d.Delivered++
		whole = append(whole, r.delivered.Sub(r.created).Milliseconds())
		assign = append(assign, r.assigned.Sub(r.created).Milliseconds())
		pick = append(pick, r.pickedUp.Sub(r.assigned).Milliseconds())
		last = append(last, r.delivered.Sub(r.pickedUp).Milliseconds())
		if !r.promised.IsZero() {
			d.Promised++
			if r.delivered.After(r.promised) {
				d.Late++
			}
		}
	}
	d.P50, d.P95 = percentile(whole, 0.5), percentile(whole, 0.95)
	d.ToAssign, d.ToPickUp, d.ToCustomer = percentile(assign, 0.5), percentile(pick, 0.5), percentile(last, 0.5)
	return d
}

func percentile(of []int64, p float64) *int64 {
	if len(of) == 0 {
		return nil
	}
	slices.Sort(of)
	return &of[int(math.Ceil(p*float64(len(of))))-1]
}

func modelFees(fs []fact) map[time.Time]analytics.FeeDay {
	out := map[time.Time]analytics.FeeDay{}
	for _, f := range fs {
		day := analytics.DayOf(f.at)
		d := out[day]
		d.Day, d.Currency = day, "BRL"
		switch e := f.data.(type) {
		case contracts.PlatformFeeBilled:
			d.Fees++
			d.Billed += e.Amount
		case contracts.PlatformFeeVoided:
			d.Voids++
			d.Voided += e.Amount
		default:
			continue
		}
		out[day] = d
	}
	return out
}

// modelSpent is how long couriers were in a state within an hour, by cutting
// each stretch of duty to it.
func modelSpent(fs []fact, hour time.Time, state string, now time.Time) (sum time.Duration) {
	type stretch struct {
		state string
		since time.Time
	}
	cut := func(s stretch, until time.Time) {
		from, to := s.since, until
		if hour.After(from) {
			from = hour
		}
		if end := hour.Add(time.Hour); end.Before(to) {
			to = end
		}
		if s.state == state && from.Before(to) {
			sum += time.Duration(to.UnixMilli()-from.UnixMilli()) * time.Millisecond
		}
	}
	open := map[uuid.UUID]stretch{}
	for _, f := range fs {
		if e, is := f.data.(contracts.CourierStatusChanged); is {
			if was, known := open[e.CourierID]; known {
				cut(was, f.at)
			}
			open[e.CourierID] = stretch{string(e.To), f.at}
		}
	}
	for _, s := range open {
		cut(s, now)
	}
	return sum
}
