// Package server is the endpoints and deliveries of package webhook over HTTP:
// JSON by an OpenAPI 3.1 document made from the types here.
//
// Promise: a caller reaches the endpoints of its own tenant and no other, and
// what it does not have answers as what does not exist. Every error is a problem
// document (RFC 9457). Bodies and the requests at work are bounded.
//
// Secrets are told to whoever has the tenant's key: that is who verifies with
// them. They are in no other answer, and in no log.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/waybillhq/waybill/webhook"
)

// Prefix is where the addresses of this server begin.
const Prefix = "/v1/webhooks"

// Authenticate finds the tenant that presents a bearer key. ErrKey says that
// there is none; any other error that it cannot be told just now.
type Authenticate func(ctx context.Context, key string) (tenant string, err error)

// ErrKey is a key that opens nothing.
var ErrKey = errors.New("unknown or revoked key")

// Deps is what the server is built on.
type Deps struct {
	Store        *webhook.Store
	Authenticate Authenticate
	Wake         func()       // of a sender in this process; may be nil
	Logger       *slog.Logger // slog.Default() if nil
}

// Config is what may be set; its zero value works.
type Config struct {
	MaxInFlight  int // requests at work; 64 if zero
	MaxPerTenant int // of one tenant; an eighth of MaxInFlight if zero
}

const (
	maxBody      = 64 << 10 // bytes of a request
	answerWithin = 10 * time.Second
)

type server struct {
	Deps
	mux     *http.ServeMux
	huma    huma.API
	slots   chan struct{}
	tenants *allowance
}

// New makes a handler of everything beneath Prefix.
func New(deps Deps, cfg Config) (http.Handler, error) {
	if deps.Store == nil || deps.Authenticate == nil {
		return nil, errors.New("webhook server: store and authentication are required")
	}
	if deps.Logger == nil {
		deps.Logger = slog.Default()
	}
	if deps.Wake == nil {
		deps.Wake = func() {}
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = 64
	}
	if cfg.MaxPerTenant == 0 {
		cfg.MaxPerTenant = max(1, cfg.MaxInFlight/8)
	}
	s := &server{
		Deps: deps, mux: http.NewServeMux(), slots: make(chan struct{}, cfg.MaxInFlight),
		tenants: &allowance{most: cfg.MaxPerTenant, held: map[string]int{}},
	}
	s.huma = humago.New(s.mux, humaConfig())
	s.huma.UseMiddleware(s.authenticate)
	s.endpointRoutes()
	s.secretRoutes()
	s.deliveryRoutes()
	s.recentRoutes()
	return s, s.document()
}

func humaConfig() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Waybill webhooks", Version: "1",
				Description: "Endpoints that are called about events, signed after Standard Webhooks, and the log of what was delivered.",
			},
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer"}},
			},
			Security: []map[string][]string{{"key": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",

		RejectUnknownQueryParameters: true,
	}
}

func (s *server) document() error {
	doc, err := json.Marshal(s.huma.OpenAPI())
	if err != nil {
		return fmt.Errorf("webhook server: write OpenAPI document: %w", err)
	}
	s.mux.HandleFunc("GET "+Prefix+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(doc) // the client left: nobody to tell
	})
	return nil
}

// ServeHTTP answers within bounds.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// A client that sends or reads slowly must not hold its place for ever.
	c, until := http.NewResponseController(w), time.Now().Add(2*answerWithin)
	_, _ = c.SetReadDeadline(until), c.SetWriteDeadline(until)
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		busy().write(w)
		return
	}
	if r.ContentLength != 0 {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	if _, pattern := s.mux.Handler(r); pattern == "" {
		problem(http.StatusNotFound, "There is nothing at this address, or not by this method; "+Prefix+"/openapi.json says what there is.").write(w)
		return
	}
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}
