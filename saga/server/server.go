// Package server is the sagas of package saga over HTTP: JSON by an OpenAPI 3.1
// document made from the types here.
//
// Promise: a tenant reads the sagas that are its own and changes nothing; only
// an operator sees all, and resumes and skips. What a caller may not see answers
// as what does not exist. Every error is a problem document (RFC 9457). The
// requests at work, their bodies and the pages are bounded.
//
//	GET  /v1/sagas                       instances, the latest first
//	GET  /v1/sagas/{saga}/{key}          one, with its record
//	POST /v1/sagas/{saga}/{key}/resume   has its step asked for anew
//	POST /v1/sagas/{saga}/{key}/skip     counts its step as seen to by hand
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Prefix is where the addresses of this server begin.
const Prefix = "/v1/sagas"

// Caller is who asks. One with a Tenant reads what is that tenant's; one with an
// Operator, the person's or tool's name, reads and changes everything.
type Caller struct {
	Tenant   string
	Operator string
}

// Authenticate finds who presents a bearer key. ErrKey says that it is
// nobody's; any other error that it cannot be told just now.
type Authenticate func(ctx context.Context, key string) (Caller, error)

// ErrKey is a key that opens nothing.
var ErrKey = errors.New("unknown or revoked key")

// Deps is what the server is built on.
type Deps struct {
	DB           *pgxpool.Pool
	Authenticate Authenticate
	Logger       *slog.Logger // slog.Default() if nil
}

// Config is what may be set; its zero value works.
type Config struct {
	MaxInFlight int // requests at work, 64 if zero
}

const (
	maxBody      = 16 << 10
	answerWithin = 10 * time.Second
)

type server struct {
	Deps
	mux   *http.ServeMux
	huma  huma.API
	slots chan struct{}
}

// New makes a handler of everything beneath Prefix.
func New(deps Deps, cfg Config) (http.Handler, error) {
	if deps.DB == nil || deps.Authenticate == nil {
		return nil, errors.New("saga server: database and authentication are required")
	}
	if deps.Logger == nil {
		deps.Logger = slog.Default()
	}
	if cfg.MaxInFlight <= 0 {
		cfg.MaxInFlight = 64
	}
	s := &server{Deps: deps, mux: http.NewServeMux(), slots: make(chan struct{}, cfg.MaxInFlight)}
	s.huma = humago.New(s.mux, humaConfig())
	s.huma.UseMiddleware(s.authenticate)
	s.routes()
	return s, s.document()
}

func humaConfig() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Waybill sagas", Version: "1",
				Description: "What services do together by events: how far it is, and what is stuck.",
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

func (s *server) document() error {
	doc, err := json.Marshal(s.huma.OpenAPI())
	if err != nil {
		return fmt.Errorf("saga server: write OpenAPI document: %w", err)
	}
	s.mux.HandleFunc("GET "+Prefix+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(doc) // the client left: nobody to tell
	})
	return nil
}

type callerKey struct{}

// authenticate is huma's middleware: every operation is somebody's.
func (s *server) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		problem(http.StatusUnauthorized, "Send a key as a bearer token.").write(w)
		return
	}
	who, err := s.Authenticate(ctx.Context(), strings.TrimSpace(key))
	switch {
	case errors.Is(err, ErrKey) || err == nil && who == (Caller{}):
		problem(http.StatusUnauthorized, "The key is unknown or revoked.").write(w)
	case err != nil:
		s.problemOf(ctx.Context(), err).write(w)
	default:
		next(huma.WithValue(ctx, callerKey{}, who))
	}
}

// callerOf is who ctx acts for. It panics where nobody was authenticated, which
// would be a route without its middleware.
func callerOf(ctx context.Context) Caller { return ctx.Value(callerKey{}).(Caller) }
