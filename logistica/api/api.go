// Package api serves the delivery product over HTTP: JSON by an OpenAPI 3.1
// document made from the types here, event streams, and the operator's health
// and metrics.
//
// Promise: every error is a problem document (RFC 9457) that carries the
// request's id, also those of the router and of unreadable bodies, and none
// carries what went wrong inside. A tenant is known by bearer key alone, and
// what belongs to another tenant answers exactly as what does not exist. Bodies,
// times and the number of requests at work are bounded.
//
// Limits: it speaks plain HTTP; TLS is for the proxy before it. When the key ends
// that a stream was opened with, ending the stream is [Streams]' to do.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// Directory knows tenants by key and by id.
type Directory interface {
	Authenticate(ctx context.Context, key string) (tenants.Tenant, error)
	Name(ctx context.Context, id uuid.UUID) (string, error)
}

// Counts is the read model of orders by state.
type Counts interface {
	Counts(ctx context.Context, tenant uuid.UUID) (map[string]int64, error)
}

// Streams delivers the messages of a channel to one client until it leaves. The
// request's context acts for the channel's tenant, and carries what the stream ends
// with: see [push.WithCredential].
type Streams interface {
	Serve(w http.ResponseWriter, r *http.Request, channel string)
}

// Check tells whether something the API needs can be used just now.
type Check struct {
	Name string
	Ask  func(ctx context.Context) error
}

// Deps is what the API is built on. Orders, Directory, Counts and Streams are
// required.
type Deps struct {
	Orders    *orders.Store
	Directory Directory
	Counts    Counts
	Streams   Streams

	// What couriers need, all of it or none: without, their routes are not there.
	Duty      Duty
	Fleet     Fleet
	Jobs      Jobs
	Telemetry Telemetry

	Couriers   CourierCards // names of couriers; answers have only their ids if nil
	Reassigner Reassigner   // lets a courier go; refused if nil

	Tenants    Tenants                    // what /v1/admin/tenants lists and makes; nothing if nil
	Keys       KeyRing                    // the API keys of /v1/keys and /v1/admin; nothing if nil
	Faults     Faults                     // what /v1/faults sets; nothing if nil
	Analytics  Analytics                  // what /v1/analytics tells; nothing if nil
	Positions  Positions                  // where couriers are; without, nobody is shown any
	Pages      func(*http.ServeMux) error // adds the pages' routes
	Ready      []Check                    // what /readyz asks
	Metrics    http.Handler               // what /metrics answers
	Monitor    http.Handler               // what /v1/lag and /v1/scale answer
	Registerer prometheus.Registerer      // takes the API's own metrics
	Logger     *slog.Logger               // slog.Default() if nil
}

// Config is what may be set; its zero value works.
type Config struct {
	// RequestTimeout bounds the work on a request that is no stream, 10 s if
	// zero.
	RequestTimeout time.Duration
	// MaxInFlight bounds the requests at work that are no streams; more are
	// told to come back. 512 if zero.
	MaxInFlight int
	// MaxPerCaller bounds how many of them are one merchant's, one courier's, or
	// the public's; a quarter if zero, at least 2.
	MaxPerCaller int
	// AtWork is how many of them are worked on at the same time, 32 if zero. The
	// others wait, and the callers take turns.
	AtWork int
	// AtWorkPerCaller is how many of these may be one caller's, three eighths and
	// 12 at most if zero: less than the database has connections for, so that
	// another finds one.
	AtWorkPerCaller int
	// Rate is how many requests a second a key's owner may send for long, 700 if
	// zero; more are slowed down, then told to come back. The public has no such bound.
	Rate float64
	// Burst is how many it may send at once after a rest, half a second's if zero.
	Burst float64
	// Assured is how many requests a second a merchant may always send, 50 if
	// zero. While other merchants send some, too, more is let through only as long
	// as all events reach the streams in time, which Delays tells.
	Assured float64
	Delays  *Delays
	// FaultsOf is a merchant whose keys set faults as an administrator's do, which
	// strike all merchants: of a demonstration. Zero for none.
	FaultsOf uuid.UUID
}

const (
	maxBody       = 1 << 20 // bytes
	maxHeaderText = 128     // bytes of an id a client chooses
)

// service is the API as an http.Handler.
type service struct {
	Deps
	cfg     Config
	mux     *http.ServeMux
	huma    huma.API
	slots   chan struct{}
	callers *allowance // requests of each, from their heads to the ends of their answers
	shares  *shares    // those at work, and those that wait for that
	pace    *pace
	streams map[string]bool // patterns of routes that stream
	metrics *metrics
}

// New builds the API.
func New(deps Deps, cfg Config) (http.Handler, error) {
	if deps.Orders == nil || deps.Directory == nil || deps.Counts == nil || deps.Streams == nil {
		return nil, errors.New("api: orders, directory, counts and streams are required")
	}
	if deps.Logger == nil {
		deps.Logger = slog.Default()
	}
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = 10 * time.Second
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = 512
	}
	if cfg.MaxPerCaller == 0 {
		cfg.MaxPerCaller = max(2, cfg.MaxInFlight/4)
	}
	if cfg.AtWork == 0 {
		cfg.AtWork = 32
	}
	if cfg.AtWorkPerCaller == 0 {
		cfg.AtWorkPerCaller = ownOf(cfg.AtWork)
	}
	if err := checkOwn(cfg.AtWorkPerCaller, cfg.AtWork); err != nil {
		return nil, err
	}
	if cfg.Rate == 0 {
		cfg.Rate = 700
	}
	if cfg.Burst == 0 {
		cfg.Burst = max(1, cfg.Rate/2)
	}
	if cfg.Assured == 0 {
		cfg.Assured = 50
	}
	pace := newPace(cfg.Rate, cfg.Burst, cfg.Assured, cfg.Delays)
	s := &service{
		Deps: deps, cfg: cfg, mux: http.NewServeMux(), slots: make(chan struct{}, cfg.MaxInFlight),
		callers: newAllowance(cfg.MaxPerCaller),
		shares:  newShares(cfg.MaxPerCaller, cfg.AtWork, cfg.AtWorkPerCaller), pace: pace,
		streams: map[string]bool{}, metrics: newMetrics(deps.Registerer, pace),
	}
	if err := s.routes(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *service) routes() error {
	s.huma = humago.New(s.mux, humaConfig())
	s.huma.UseMiddleware(s.authenticate)
	s.orderRoutes()
	s.assignmentRoutes()
	s.trackRoutes()
	s.positionRoutes()
	s.streamRoutes()
	s.courierRoutes()
	s.faultRoutes()
	s.analyticsRoutes()
	s.keyRoutes()
	s.adminRoutes()
	s.operatorRoutes()
	if err := s.dayRoutes(); err != nil {
		return fmt.Errorf("api: report of a day: %w", err)
	}
	if err := s.documentRoutes(); err != nil {
		return err
	}
	if s.Pages != nil {
		if err := s.Pages(s.mux); err != nil {
			return fmt.Errorf("api: pages: %w", err)
		}
	}
	return nil
}

// humaConfig leaves out huma's documents: its page loads from other hosts, and
// its OpenAPI text is made at the first request, without a lock.
func humaConfig() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Waybill Logística", Version: "1",
				Description: "Orders of a merchant, their delivery, and the events that tell of it.",
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"key": {Type: "http", Scheme: "bearer", Description: "An API key: a merchant's, a courier's for what begins with /v1/courier/, an administrator's for /v1/admin/."},
				},
			},
			Security: []map[string][]string{{"key": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": strictJSON(), "json": strictJSON()},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{toProblem},

		RejectUnknownQueryParameters: true,
	}
}

// strictJSON refuses bytes that are no UTF-8, which the decoder would replace
// without a word: another text than was sent would be kept.
func strictJSON() huma.Format {
	f := huma.DefaultJSONFormat
	decode := f.Unmarshal
	f.Unmarshal = func(data []byte, v any) error {
		if !utf8.Valid(data) {
			return errors.New("is not UTF-8")
		}
		return decode(data, v)
	}
	return f
}
