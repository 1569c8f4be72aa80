package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// Duty is a courier's standing, and their word on it.
type Duty interface {
	Get(ctx context.Context, courier uuid.UUID) (couriers.Courier, error)
	SetStatus(ctx context.Context, courier uuid.UUID, to couriers.State, expected *int64) (couriers.Courier, error)
	Decline(ctx context.Context, courier, order uuid.UUID, reason string) error
}

func (s *service) courierRoutes() {
	if s.Duty == nil || s.Fleet == nil || s.Jobs == nil || s.Telemetry == nil {
		return
	}
	route(s, huma.Operation{
		OperationID: "get-courier", Method: http.MethodGet, Path: "/v1/courier", Metadata: takes(tenants.Courier),
		Summary: "Tell which courier's key this is", Errors: []int{401, 403, 404, 429, 503},
	}, s.getCourier)
	route(s, huma.Operation{
		OperationID: "set-courier-status", Method: http.MethodPost, Path: "/v1/courier/status", Metadata: takes(tenants.Courier),
		Summary: "Go on duty, pause or go home", Errors: []int{400, 401, 403, 404, 409, 413, 415, 422, 429, 503},
		Description: "A courier who has an order is RESERVED or BUSY and stays so until it ends: 409. Who becomes AVAILABLE may be answered as RESERVED, for an order that waited.",
	}, s.setStatus)
	s.jobRoutes()
	s.fixRoutes()
	s.fleetRoutes()
	s.stream("/v1/courier/events", s.courierChannel, &huma.Operation{
		OperationID: "stream-courier", Summary: "Follow what concerns the courier", Metadata: takes(tenants.Courier),
		Description: "Server-Sent Events that say only that something has changed: read /v1/courier/jobs then, and on a message named reset.",
	})
}

// courierOf is the courier whose key ctx was authenticated by.
func courierOf(ctx context.Context) uuid.UUID { return tenantOf(ctx).Courier }

// courierChannel is where wake-ups of a courier go.
func (s *service) courierChannel(ctx context.Context, r *http.Request) (followed, *Problem) {
	acting, refused := s.tenant(ctx, r, tenants.Courier)
	if refused != nil {
		return followed{}, refused
	}
	return followed{"courier/" + courierOf(acting).String(), tenants.Platform, credentialOf(tenantOf(acting))}, nil
}

// CourierSelf is a courier as they see themselves.
type CourierSelf struct {
	ID      uuid.UUID `json:"id" format:"uuid"`
	Name    string    `json:"name"`
	Vehicle string    `json:"vehicle" enum:"MOTORBIKE,BICYCLE,CAR"`
	State   string    `json:"state" enum:"OFFLINE,AVAILABLE,RESERVED,BUSY,PAUSED"`
	Allowed []string  `json:"allowed" nullable:"false" doc:"What they may choose now; nothing while an order is theirs."`
	Version int64     `json:"version" doc:"Counts the changes of their state."`
}

type courierOutput struct{ Body CourierSelf }

func courierJSON(c couriers.Courier) CourierSelf {
	return CourierSelf{
		ID: c.ID, Name: c.Name, Vehicle: string(c.Vehicle), State: string(c.State),
		Allowed: dutyNames(couriers.Allowed(c.State)), Version: c.Version,
	}
}

func dutyNames(states []couriers.State) []string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = string(s)
	}
	return out
}

func (s *service) getCourier(ctx context.Context, _ *struct{}) (*courierOutput, error) {
	c, err := s.Duty.Get(ctx, courierOf(ctx))
	if err != nil {
		return nil, err
	}
	return &courierOutput{courierJSON(c)}, nil
}

type statusInput struct {
	Body struct {
		State           string `json:"state" enum:"AVAILABLE,PAUSED,OFFLINE"`
		ExpectedVersion *int64 `json:"expected_version,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Refuse with 409 unless the courier is at this version."`
	}
}

func (s *service) setStatus(ctx context.Context, in *statusInput) (*courierOutput, error) {
	c, err := s.Duty.SetStatus(ctx, courierOf(ctx), couriers.State(in.Body.State), in.Body.ExpectedVersion)
	if err != nil {
		return nil, err
	}
	return &courierOutput{courierJSON(c)}, nil
}
