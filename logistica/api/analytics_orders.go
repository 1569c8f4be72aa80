package api

import (
	"context"
	"time"

	"github.com/waybillhq/waybill/logistica/tenants"
)

type analyseOrdersInput struct {
	ScopeInput
	HoursInput
}

// OrderMinute is a minute's new orders.
type OrderMinute struct {
	At      time.Time `json:"at" doc:"Its beginning."`
	Created int64     `json:"created"`
}

// OrderHour is what came into which state in an hour.
type OrderHour struct {
	Hour    time.Time        `json:"hour" doc:"Its beginning."`
	Entered map[string]int64 `json:"entered" doc:"Orders that came into a state, by state; an order may come into one twice."`
}

type analyseOrdersOutput struct {
	Body struct {
		KeyScope string           `json:"key_scope" enum:"merchant,admin" doc:"Of the key that asks."`
		Now      time.Time        `json:"now"`
		Minutes  []OrderMinute    `json:"minutes" nullable:"false" doc:"The last sixty, the present one included, the oldest first."`
		ByState  map[string]int64 `json:"by_state" doc:"Orders now; states without any are left out."`
		Hours    []OrderHour      `json:"hours" nullable:"false"`
	}
}

const minutesShown = 60

func (s *service) analyseOrders(ctx context.Context, in *analyseOrdersInput) (*analyseOrdersOutput, error) {
	scope, err := s.scope(ctx, in.ScopeInput)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	out := &analyseOrdersOutput{}
	out.Body.Now, out.Body.KeyScope = now, string(tenants.Merchant)
	if tenantOf(ctx).Scope == tenants.Admin {
		out.Body.KeyScope = string(tenants.Admin)
	}
	last := now.Truncate(time.Minute).Add(time.Minute)
	first := last.Add(-minutesShown * time.Minute)
	minutes, err := s.Analytics.Minutes(ctx, scope, first, last)
	if err != nil {
		return nil, err
	}
	made := map[time.Time]int64{}
	for _, m := range minutes {
		made[m.At] = m.Created
	}
	for at := first; at.Before(last); at = at.Add(time.Minute) {
		out.Body.Minutes = append(out.Body.Minutes, OrderMinute{at, made[at]})
	}
	if out.Body.ByState, err = s.Analytics.States(ctx, scope); err != nil {
		return nil, err
	}
	from, to := in.window(now)
	hours, err := s.Analytics.StateHours(ctx, scope, from, to)
	if err != nil {
		return nil, err
	}
	entered := map[time.Time]map[string]int64{}
	everyHour(from, to, func(h time.Time) {
		entered[h] = map[string]int64{}
		out.Body.Hours = append(out.Body.Hours, OrderHour{h, entered[h]})
	})
	for _, h := range hours {
		entered[h.Hour][h.State] = h.Entered
	}
	return out, nil
}
