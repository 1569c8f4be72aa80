// Package sim plays a day of deliveries in São Paulo: merchants take orders,
// couriers ride through the streets with them, customers open their doors or do
// not.
//
// Promise: it knows the product as any stranger does, by its public HTTP API and
// API keys; nothing here imports it. What people decide follows from a seed: the
// same merchants, couriers, orders and moods. It waits where the product asks for
// patience, survives its absence, and stops when it is told to.
//
// Limits: when things happen depends on the product and the machine, so two runs
// of one seed differ in who delivers what. Positions bear real times and
// simulated distances: at a speed above 1 couriers seem to fly, and what the
// product estimates from them is wrong by as much. The streets are coarse, see
// [streets]. What is shown as delivered is what the product answered.
package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/logistica/sim/streets"
)

// Enroll makes those who take part, which the public API cannot. Asked again for
// the same index it may return the same ones.
type Enroll interface {
	// Merchant is a tenant's API key.
	Merchant(ctx context.Context, index int, name string) (key string, err error)
	// Courier is the API key of a courier who rides for all merchants asked for
	// before.
	Courier(ctx context.Context, c Courier) (key string, err error)
}

// Config is what may be set. URL is required.
type Config struct {
	URL       string // of the product's API, such as http://127.0.0.1:8080
	Seed      uint64
	Merchants int     // 5 if zero
	Couriers  int     // 20 if zero; none if negative
	Rate      float64 // orders a simulated minute on the mean of a day, 2 if zero
	Max       bool    // as many orders as the product takes, instead of Rate
	Workers   int     // requests for orders under way at most, 16 if zero

	// Speed is how many times as fast as real time it goes: 1 to 600, 1 if zero.
	Speed float64
	// Start is the simulated time at the beginning, now if zero.
	Start time.Time
	// Duration is of real time, until ctx ends if zero.
	Duration time.Duration

	Progress func(Stats)  // called about once a second, may be nil
	Logger   *slog.Logger // slog.Default() if nil
}

// Sim is a simulation. It is run once.
type Sim struct {
	cfg      Config
	enroll   Enroll
	plan     *plan
	clock    atomic.Pointer[clock] // from the beginning of Run on
	run      uint64                // tells this run's requests from another's
	client   *client
	streams  *http.Client
	keys     []string // the merchants'
	book     *book
	counters counters
	cancels  atomic.Int64
	aside    sync.WaitGroup
	log      *slog.Logger
}

// New makes a simulation.
func New(enroll Enroll, cfg Config) (*Sim, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	city, err := streets.SaoPaulo()
	if err != nil {
		return nil, fmt.Errorf("streets: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: 30 * time.Second}
	s := &Sim{
		cfg: cfg, enroll: enroll, plan: newPlan(city, cfg.Seed, cfg.Merchants), book: newBook(bookLength),
		run: rand.Uint64(), streams: &http.Client{Transport: transport}, log: cfg.Logger, //nolint:gosec // no secret
	}
	s.client = &client{
		url: strings.TrimRight(cfg.URL, "/"), stats: &s.counters,
		http: &http.Client{Transport: transport, Timeout: 20 * time.Second},
	}
	return s, nil
}

func (c Config) withDefaults() (Config, error) {
	if c.URL == "" {
		return c, errors.New("a simulation needs the URL of the API")
	}
	if c.Speed == 0 {
		c.Speed = 1
	}
	if c.Speed < 1 || c.Speed > 600 {
		return c, fmt.Errorf("speed %g: a simulation runs at 1 to 600 times real time", c.Speed)
	}
	if c.Rate == 0 {
		c.Rate = 2
	}
	if c.Rate < 0 || c.Merchants < 0 || c.Workers < 0 || c.Duration < 0 {
		return c, errors.New("rate, merchants, workers and duration are not negative")
	}
	if c.Merchants == 0 {
		c.Merchants = 5
	}
	switch {
	case c.Couriers == 0:
		c.Couriers = 20
	case c.Couriers < 0:
		c.Couriers = 0
	}
	if c.Workers == 0 {
		c.Workers = 16
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

// Run plays until ctx ends or Config.Duration is over, and returns nil then. It
// returns an error where somebody cannot be enrolled, or a key is not taken.
func (s *Sim) Run(ctx context.Context) error {
	defer s.streams.CloseIdleConnections()
	riders, err := s.enrollAll(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	s.clock.Store(newClock(s.cfg.Start, s.cfg.Speed))
	if s.cfg.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Duration)
		defer cancel()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.order(ctx) })
	g.Go(func() error { s.progress(ctx); return nil })
	for _, c := range riders {
		c.device = newDevice(s, c.key, random(s.cfg.Seed, ofRides, c.who.Index<<1))
		g.Go(func() error { return c.run(ctx) })
	}
	err = g.Wait()
	s.aside.Wait()
	if s.cfg.Progress != nil {
		s.cfg.Progress(s.Stats())
	}
	return err
}

func (s *Sim) enrollAll(ctx context.Context) (riders []*courier, err error) {
	for i := range s.plan.merchants {
		key, err := s.enroll.Merchant(ctx, i, s.plan.merchants[i].name)
		if err != nil {
			return nil, fmt.Errorf("enrol merchant %d: %w", i+1, err)
		}
		s.keys = append(s.keys, key)
	}
	for i := range s.cfg.Couriers {
		who := s.plan.courier(i)
		key, err := s.enroll.Courier(ctx, who)
		if err != nil {
			return nil, fmt.Errorf("enrol courier %d: %w", i+1, err)
		}
		riders = append(riders, &courier{
			sim: s, who: who, key: key, at: who.home, woken: make(chan struct{}, 1),
			rng: random(s.cfg.Seed, ofRides, i<<1|1),
		})
	}
	return riders, nil
}

func (s *Sim) progress(ctx context.Context) {
	if s.cfg.Progress == nil {
		return
	}
	for sleep(ctx, time.Second) == nil {
		s.cfg.Progress(s.Stats())
	}
}
