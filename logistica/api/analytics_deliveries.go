package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/analytics"
)

// DeliveryFigures is what was delivered in some time.
type DeliveryFigures struct {
	Delivered  int64    `json:"delivered"`
	P50        *int64   `json:"p50_ms,omitempty" doc:"From creation to delivery: the median."`
	P95        *int64   `json:"p95_ms,omitempty"`
	ToAssign   *int64   `json:"assign_p50_ms,omitempty" doc:"From creation to the last assignment: the median."`
	ToPickUp   *int64   `json:"pickup_p50_ms,omitempty" doc:"From that to the pickup: the median."`
	ToCustomer *int64   `json:"ride_p50_ms,omitempty" doc:"From the pickup to the delivery: the median."`
	Promised   int64    `json:"promised" doc:"Of the delivered, those that a moment was promised for."`
	Late       int64    `json:"late" doc:"Of these, those that came after it."`
	LateShare  *float64 `json:"late_share,omitempty" minimum:"0" maximum:"1" doc:"Late of promised."`
}

func deliveryFigures(d analytics.Deliveries) DeliveryFigures {
	return DeliveryFigures{
		d.Delivered, d.P50, d.P95, d.ToAssign, d.ToPickUp, d.ToCustomer,
		d.Promised, d.Late, partOf(d.Late, d.Promised),
	}
}

// DeliveryHour is what was delivered in an hour.
type DeliveryHour struct {
	Hour time.Time `json:"hour" doc:"Its beginning."`
	DeliveryFigures
}

type analyseDeliveriesOutput struct {
	Body struct {
		Total DeliveryFigures `json:"total"`
		Hours []DeliveryHour  `json:"hours" nullable:"false" doc:"The oldest first."`
	}
}

func (s *service) analyseDeliveries(ctx context.Context, in *analyseOrdersInput) (*analyseDeliveriesOutput, error) {
	scope, err := s.scope(ctx, in.ScopeInput)
	if err != nil {
		return nil, err
	}
	from, to := in.window(time.Now())
	total, hours, err := s.Analytics.Delivered(ctx, scope, from, to)
	if err != nil {
		return nil, err
	}
	of := map[time.Time]analytics.Deliveries{}
	for _, h := range hours {
		of[h.Hour] = h.Deliveries
	}
	out := &analyseDeliveriesOutput{}
	out.Body.Total = deliveryFigures(total)
	everyHour(from, to, func(h time.Time) {
		out.Body.Hours = append(out.Body.Hours, DeliveryHour{h, deliveryFigures(of[h])})
	})
	return out, nil
}

// TenantFigures is what a merchant had created and delivered.
type TenantFigures struct {
	ID      uuid.UUID `json:"id" format:"uuid"`
	Name    string    `json:"name"`
	Created int64     `json:"created"`
	DeliveryFigures
}

type analyseTenantsOutput struct {
	Body struct {
		Tenants []TenantFigures `json:"tenants" nullable:"false" doc:"The one with the most orders first."`
	}
}

const tenantsShown = 50

func (s *service) analyseTenants(ctx context.Context, in *HoursInput) (*analyseTenantsOutput, error) {
	from, to := in.window(time.Now())
	rows, err := s.Analytics.Tenants(ctx, from, to, tenantsShown)
	if err != nil {
		return nil, err
	}
	out := &analyseTenantsOutput{}
	out.Body.Tenants = make([]TenantFigures, len(rows))
	for i, r := range rows {
		name, err := s.Directory.Name(ctx, r.Tenant)
		if err != nil {
			name = r.Tenant.String() // its events outlive it
		}
		out.Body.Tenants[i] = TenantFigures{r.Tenant, name, r.Created, deliveryFigures(r.Deliveries)}
	}
	return out, nil
}
