package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/webhook"
)

// Settings of an endpoint.
type Settings struct {
	URL         string   `json:"url" maxLength:"2048" doc:"Where it is called, by https."`
	Description string   `json:"description,omitempty" maxLength:"500"`
	Types       []string `json:"types,omitempty" maxItems:"100" doc:"Patterns of event types: words between dots, * for one word, > at the end for one or more. All types if left out."`
	Ordered     bool     `json:"ordered,omitempty" doc:"One event of a key at a time, in order. One that fails holds back those behind it."`
}

func (in Settings) settings() webhook.Settings {
	return webhook.Settings{URL: in.URL, Description: in.Description, Types: in.Types, Ordered: in.Ordered}
}

// Endpoint is who is called.
type Endpoint struct {
	ID uuid.UUID `json:"id"`
	Settings
	Algorithm    string     `json:"algorithm" enum:"hmac,ed25519"`
	State        string     `json:"state" enum:"enabled,disabled"`
	Reason       string     `json:"reason,omitempty" doc:"Why it is disabled."`
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	Failures     int        `json:"failures" doc:"Calls that failed, since the last that succeeded."`
	FailingSince *time.Time `json:"failing_since" doc:"Null if the last call succeeded."`
	OpenUntil    *time.Time `json:"open_until" doc:"It is not called before; null if it is called."`
}

func endpointOf(e webhook.Endpoint) Endpoint {
	return Endpoint{
		ID: e.ID, Settings: Settings{e.URL, e.Description, e.Types, e.Ordered}, Algorithm: string(e.Algorithm),
		State: string(e.State), Reason: e.Reason, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
		Failures: e.Failures, FailingSince: e.FailingSince, OpenUntil: e.OpenUntil,
	}
}

// Path names an endpoint.
type Path struct {
	Endpoint uuid.UUID `path:"endpoint"`
}

func (s *server) endpointRoutes() {
	one := Prefix + "/endpoints/{endpoint}"
	route(s, huma.Operation{
		OperationID: "create-webhook-endpoint", Method: http.MethodPost, Path: Prefix + "/endpoints", DefaultStatus: http.StatusCreated,
		Summary: "Create an endpoint; the answer has its secret", Errors: []int{409},
	}, s.create)
	route(s, huma.Operation{OperationID: "list-webhook-endpoints", Method: http.MethodGet, Path: Prefix + "/endpoints", Summary: "List endpoints"}, s.list)
	route(s, huma.Operation{OperationID: "get-webhook-endpoint", Method: http.MethodGet, Path: one, Summary: "Show an endpoint"}, s.get)
	route(s, huma.Operation{OperationID: "update-webhook-endpoint", Method: http.MethodPut, Path: one, Summary: "Give an endpoint new settings"}, s.update)
	route(s, huma.Operation{OperationID: "delete-webhook-endpoint", Method: http.MethodDelete, Path: one, Summary: "Delete an endpoint"}, s.remove)
	route(s, huma.Operation{
		OperationID: "enable-webhook-endpoint", Method: http.MethodPost, Path: one + "/enable",
		Summary: "Have an endpoint called again; replay sends what failed meanwhile",
	}, s.enable)
	route(s, huma.Operation{
		OperationID: "disable-webhook-endpoint", Method: http.MethodPost, Path: one + "/disable", Summary: "Stop calling an endpoint; what waits for it fails",
	}, s.disable)
}

type createInput struct {
	Body struct {
		Settings
		Algorithm string `json:"algorithm,omitempty" enum:"hmac,ed25519" doc:"hmac if left out."`
	}
}

type createOutput struct {
	Body struct {
		Endpoint
		Secret string `json:"secret" doc:"What to verify with: whsec_… or, of a pair, the public whpk_…"`
	}
}

func (s *server) create(ctx context.Context, in *createInput) (*createOutput, error) {
	settings := in.Body.settings()
	settings.Algorithm = webhook.Algorithm(in.Body.Algorithm)
	e, err := s.Store.Create(ctx, tenantOf(ctx), settings)
	if err != nil {
		return nil, err
	}
	secrets, err := s.Store.Secrets(ctx, tenantOf(ctx), e.ID)
	if err != nil {
		return nil, err
	}
	out := &createOutput{}
	out.Body.Endpoint, out.Body.Secret = endpointOf(e), secrets[0].Key
	return out, nil
}

type listOutput struct {
	Body struct {
		Endpoints []Endpoint `json:"endpoints"`
	}
}

func (s *server) list(ctx context.Context, _ *struct{}) (*listOutput, error) {
	all, err := s.Store.List(ctx, tenantOf(ctx))
	if err != nil {
		return nil, err
	}
	out := &listOutput{}
	out.Body.Endpoints = []Endpoint{}
	for _, e := range all {
		out.Body.Endpoints = append(out.Body.Endpoints, endpointOf(e))
	}
	return out, nil
}

type endpointOutput struct{ Body Endpoint }

func (s *server) get(ctx context.Context, in *Path) (*endpointOutput, error) {
	e, err := s.Store.Get(ctx, tenantOf(ctx), in.Endpoint)
	return &endpointOutput{endpointOf(e)}, err
}

type updateInput struct {
	Path
	Body Settings
}

func (s *server) update(ctx context.Context, in *updateInput) (*endpointOutput, error) {
	e, err := s.Store.Update(ctx, tenantOf(ctx), in.Endpoint, in.Body.settings())
	return &endpointOutput{endpointOf(e)}, err
}

func (s *server) remove(ctx context.Context, in *Path) (*struct{}, error) {
	return nil, s.Store.Delete(ctx, tenantOf(ctx), in.Endpoint)
}

func (s *server) enable(ctx context.Context, in *Path) (*struct{}, error) {
	return nil, s.Store.Enable(ctx, tenantOf(ctx), in.Endpoint)
}

type disableInput struct {
	Path
	Body struct {
		Reason string `json:"reason,omitempty" maxLength:"500"`
	} `required:"false"`
}

func (s *server) disable(ctx context.Context, in *disableInput) (*struct{}, error) {
	return nil, s.Store.Disable(ctx, tenantOf(ctx), in.Endpoint, in.Body.Reason)
}
