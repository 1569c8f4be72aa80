// Package server is the queues of package queue over HTTP, so that a worker may
// be written in any language: JSON by an OpenAPI 3.1 document made from the
// types here.
//
// Promise: a caller reaches the queues of its own tenant and no other, and what
// it does not have answers as what does not exist. Every error is a problem
// document (RFC 9457). Bodies, waits, and the requests at work are bounded.
//
// Limits: delivery is at least once; a request whose answer is lost may have
// been carried out: send with a dedupe_id. Messages that were leased for a
// client that left come again at the end of their lease.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/queue"
)

// Prefix is where the addresses of this server begin.
const Prefix = "/v1/queues"

// Authenticate finds the tenant that presents a bearer key. ErrKey says that
// there is none; any other error that it cannot be told just now.
type Authenticate func(ctx context.Context, key string) (tenant string, err error)

// ErrKey is a key that opens nothing.
var ErrKey = errors.New("unknown or revoked key")

// Deps is what the server is built on.
type Deps struct {
	DB           *pgxpool.Pool
	Authenticate Authenticate
	Signals      *queue.Signals // may be nil
	Logger       *slog.Logger   // slog.Default() if nil
}

// Config is what may be set; its zero value works.
type Config struct {
	// MaxInFlight bounds the requests at work, 256 if zero.
	MaxInFlight int
	// MaxWaiting bounds the requests of one tenant that wait for messages, 64
	// if zero; further ones are answered at once.
	MaxWaiting int
	// MaxQueues bounds the queues of one tenant, 100 if zero.
	MaxQueues int
}

const (
	maxBody = 24 << 20 // bytes of a request: a full Send in base64
	maxWait = 20 * time.Second
	// answerWithin bounds a request; those that wait have their wait besides.
	answerWithin = 10 * time.Second
)

type server struct {
	Deps
	mux     *http.ServeMux
	huma    huma.API
	slots   chan struct{}
	waiting *shares
	most    int // queues of a tenant
	handles *handles
}

// New makes a handler of everything beneath Prefix.
func New(deps Deps, cfg Config) (http.Handler, error) {
	if deps.DB == nil || deps.Authenticate == nil {
		return nil, errors.New("queue server: database and authentication are required")
	}
	if deps.Logger == nil {
		deps.Logger = slog.Default()
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = 256
	}
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = 64
	}
	if cfg.MaxQueues == 0 {
		cfg.MaxQueues = 100
	}
	s := &server{
		Deps: deps, most: cfg.MaxQueues, mux: http.NewServeMux(), slots: make(chan struct{}, cfg.MaxInFlight),
		waiting: &shares{most: cfg.MaxWaiting, taken: map[string]int{}}, handles: newHandles(deps.DB, deps.Signals),
	}
	s.huma = humago.New(s.mux, humaConfig())
	s.huma.UseMiddleware(s.authenticate)
	s.queueRoutes()
	s.messageRoutes()
	s.deadRoutes()
	return s, s.document()
}

func humaConfig() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Waybill queues", Version: "1",
				Description: "Point-to-point queues: send, receive with a lease, acknowledge.",
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
	c, until := http.NewResponseController(w), time.Now().Add(maxWait+2*answerWithin)
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
	ctx, cancel := context.WithTimeout(r.Context(), maxWait+answerWithin)
	defer cancel()
	if _, pattern := s.mux.Handler(r); pattern == "" {
		problem(http.StatusNotFound, "There is nothing at this address, or not by this method; "+Prefix+"/openapi.json says what there is.").write(w)
		return
	}
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}
