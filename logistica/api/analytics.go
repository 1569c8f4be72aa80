package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// Analytics is what can be counted of deliveries, as analytics.Model keeps it.
type Analytics interface {
	Minutes(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.Minute, error)
	StateHours(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.StateHour, error)
	States(ctx context.Context, s analytics.Scope) (map[string]int64, error)
	Delivered(ctx context.Context, s analytics.Scope, from, to time.Time) (analytics.Deliveries, []analytics.DeliveryHour, error)
	FeeDays(ctx context.Context, s analytics.Scope, from, to time.Time) ([]analytics.FeeDay, error)
	CourierHours(ctx context.Context, from, to, now time.Time) ([]analytics.CourierHour, error)
	Tenants(ctx context.Context, from, to time.Time, limit int) ([]analytics.TenantDeliveries, error)
}

const followsAfter = " From read models built from events: they follow after a moment. An administrator reads all merchants together, or the one that tenant names; a merchant its own."

// analyticsRoutes are a merchant's and an administrator's.
func (s *service) analyticsRoutes() {
	if s.Analytics == nil {
		return
	}
	const at = "/v1/analytics/"
	either, only := takes(tenants.Merchant, tenants.Admin), takes(tenants.Admin)
	refusals := []int{401, 403, 404, 422, 429, 503}
	route(s, huma.Operation{
		OperationID: "analyse-orders", Method: http.MethodGet, Path: at + "orders", Metadata: either, Errors: refusals,
		Summary:     "Orders created by minute, by state now, and by hour and state",
		Description: "The last sixty minutes, and the hours that were asked for." + followsAfter,
	}, s.analyseOrders)
	route(s, huma.Operation{
		OperationID: "analyse-deliveries", Method: http.MethodGet, Path: at + "deliveries", Metadata: either, Errors: refusals,
		Summary:     "How long deliveries took and how many came late, by hour",
		Description: "By the hour of the delivery. A percentile is the least duration that as many of the deliveries do not exceed; it is left out where there were none." + followsAfter,
	}, s.analyseDeliveries)
	route(s, huma.Operation{
		OperationID: "analyse-fees", Method: http.MethodGet, Path: at + "fees", Metadata: either, Errors: refusals,
		Summary:     "What the platform billed, by day and currency",
		Description: "Days of " + analytics.DayZone + "; those without a fee are left out. A fee is voided on the day that it is voided." + followsAfter,
	}, s.analyseFees)
	route(s, huma.Operation{
		OperationID: "analyse-couriers", Method: http.MethodGet, Path: at + "couriers", Metadata: only, Errors: refusals,
		Summary:     "What couriers did with their time, by hour",
		Description: "All couriers together: they ride for several merchants, so no merchant is told.",
	}, s.analyseCouriers)
	route(s, huma.Operation{
		OperationID: "analyse-tenants", Method: http.MethodGet, Path: at + "tenants", Metadata: only, Errors: refusals,
		Summary: "Orders and deliveries by merchant", Description: "The merchants with the most orders in those hours, 50 at most.",
	}, s.analyseTenants)
}

// ScopeInput is whose figures are asked for.
type ScopeInput struct {
	Tenant string `query:"tenant" maxLength:"64" doc:"An administrator's choice of one merchant, by id."`
}

// scope is whose figures the caller gets. A merchant who names another learns
// nothing of it, not even whether it is there.
func (s *service) scope(ctx context.Context, in ScopeInput) (analytics.Scope, error) {
	who := tenantOf(ctx)
	if in.Tenant == "" {
		if who.Scope == tenants.Admin {
			return analytics.All(), nil
		}
		return analytics.Of(who.ID), nil
	}
	id, err := uuid.Parse(in.Tenant)
	if err != nil {
		return analytics.Scope{}, badQuery("tenant", "Must be a merchant's id.")
	}
	switch {
	case who.Scope == tenants.Admin:
		if _, err := s.Directory.Name(ctx, id); err != nil {
			return analytics.Scope{}, err
		}
	case id != who.ID:
		return analytics.Scope{}, tenants.ErrNotFound
	}
	return analytics.Of(id), nil
}

// HoursInput is how far back figures go.
type HoursInput struct {
	Hours int `query:"hours" minimum:"1" maximum:"168" default:"24" doc:"How many hours, the present one included."`
}

// window is from the first of the hours to the end of the present one.
func (in HoursInput) window(now time.Time) (from, to time.Time) {
	to = now.UTC().Truncate(time.Hour).Add(time.Hour)
	return to.Add(-time.Duration(in.Hours) * time.Hour), to
}

// everyHour calls each with the hours of a window.
func everyHour(from, to time.Time, each func(time.Time)) {
	for h := from; h.Before(to); h = h.Add(time.Hour) {
		each(h)
	}
}

// partOf is a part of a whole, nil of nothing.
func partOf(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	v := float64(part) / float64(whole)
	return &v
}
