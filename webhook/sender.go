package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/event"
)

// Config of a sender. The zero value works.
type Config struct {
	Timeout        time.Duration // of a call, from the look at the name to the last byte; default 15 s
	MaxInFlight    int           // calls at a time; default 1024. Half of them may be retries
	MaxPerTenant   int           // default 256
	MaxPerEndpoint int           // at most; it begins with one and grows with the answers; default 32
	MaxHeld        int           // bytes of bodies in memory, exceeded by some hundred bodies; default 64 MiB
	MaxLanes       int           // endpoints at a time; default 20 000
	MaxWaiting     int           // deliveries to one endpoint, past which further ones fail at once; default 100 000

	Window       time.Duration // for which a delivery is tried; default 72 h
	DisableAfter time.Duration // an endpoint of which every attempt fails is disabled; default 72 h
	Keep         time.Duration // of the log, by the events' own days; default 30 days, at least Window and a day

	Every time.Duration // between looks for what is to be sent; default 100 ms
	Lease time.Duration // after which others take over from a sender that died; default Timeout and 15 s
	Drain time.Duration // for calls under way at the end; default 5 s
	// Alone says that no other process sends from this database: one that was here
	// before is dead, and is followed at once rather than after its lease.
	Alone bool

	UserAgent string // default "Waybill-Webhooks/1"
	// Wrap is put around what makes calls, beneath the signature and above the
	// guard: to see them, or to have them fail for a trial. nil: nothing.
	Wrap    func(http.RoundTripper) http.RoundTripper
	Metrics prometheus.Registerer // nil: none
	Logger  *slog.Logger          // nil: slog.Default
}

func (c Config) withDefaults() Config {
	or(&c.Timeout, 15*time.Second)
	or(&c.MaxInFlight, 1024)
	or(&c.MaxPerTenant, 256)
	or(&c.MaxPerEndpoint, 32)
	or(&c.MaxHeld, 64<<20)
	or(&c.MaxLanes, 20_000)
	or(&c.MaxWaiting, 100_000)
	or(&c.Window, 72*time.Hour)
	or(&c.DisableAfter, 72*time.Hour)
	or(&c.Keep, 30*24*time.Hour)
	c.Keep = max(c.Keep, c.Window+24*time.Hour)
	or(&c.Every, 100*time.Millisecond)
	or(&c.Lease, c.Timeout+15*time.Second)
	c.Lease = max(c.Lease, c.Timeout+time.Second)
	or(&c.Drain, 5*time.Second)
	if c.UserAgent == "" {
		c.UserAgent = "Waybill-Webhooks/1"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func or[T int | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// Sender calls endpoints. Several processes may run one each: an endpoint is one
// sender's at a time, so that its order, its pace and its breaker are kept.
type Sender struct {
	store  *Store
	cfg    Config
	log    *slog.Logger
	meter  *meter
	client *http.Client
	hangUp func()        // closes its idle connections, whatever is wrapped around it
	wake   chan struct{} // something was handed over
	kick   chan struct{} // a lane may be hungry
	record chan struct{} // there are results

	mu      sync.Mutex
	id      uuid.UUID // of this sender, until its lease is lost
	fence   time.Time // no call begins after
	closing bool
	rota    *rota
	lanes   map[laneKey]*lane
	held    int // bytes of bodies
	results []result
	resting map[*lane]bool   // their breakers are open
	late    map[lateKey]bool // noted while a claim reads, which may not have seen it; nil: none reads
	missing map[lateKey]bool // events that were not found once
	crowd   crowd
	calls   sync.WaitGroup
	calling context.Context //nolint:containedctx // of all calls: Run's, and for a while longer
}

// NewSender makes a sender of what store has.
func NewSender(store *Store, cfg Config) *Sender {
	cfg = cfg.withDefaults()
	s := &Sender{
		store: store, cfg: cfg, log: cfg.Logger.With("part", "webhook"), client: store.guard.Client(),
		wake: make(chan struct{}, 1), kick: make(chan struct{}, 1), record: make(chan struct{}, 1),
		id: event.NewID(), lanes: map[laneKey]*lane{}, resting: map[*lane]bool{}, missing: map[lateKey]bool{},
		rota: newRota(cfg.MaxInFlight, max(cfg.MaxInFlight/2, 1), cfg.MaxPerTenant),
	}
	s.hangUp = s.client.CloseIdleConnections
	if cfg.Wrap != nil {
		wrapped := *s.client
		wrapped.Transport = cfg.Wrap(s.client.Transport)
		s.client = &wrapped
	}
	s.meter = newMeter(cfg.Metrics, s)
	return s
}

// Wake says that something was handed over, or is about to be: the sender looks
// at once rather than within Config.Every. It does not block.
func (s *Sender) Wake() { poke(s.wake) }

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends, and returns nil once calls have ended, or Config.Drain
// is over, and what came of them is noted. While the database is away it waits.
func (s *Sender) Run(ctx context.Context) error {
	defer s.hangUp()
	// Before anything is sent: rows that move into a new day are not to be seen
	// for a moment.
	if err := EnsureDays(ctx, s.store.db); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "the days of the webhook log are not made; tried again", "error", err)
	}
	calling, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	s.calling = calling
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	recorded := make(chan struct{})
	go func() { defer close(recorded); s.recordAll(recording) }()

	g, gctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context){s.beats, s.fetches, s.refreshes, s.measures, s.keeps} {
		g.Go(func() error { part(gctx); return nil })
	}
	err := g.Wait()
	s.drain(hangUp)
	stopRecording()
	<-recorded
	s.leave(context.WithoutCancel(ctx))
	return err
}

// drain lets the calls that are under way end, for a while.
func (s *Sender) drain(hangUp func()) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { defer close(ended); s.calls.Wait() }()
	select {
	case <-ended:
	case <-time.After(s.cfg.Drain):
		hangUp() // they are not counted: they are made again
		<-ended
	}
}

// pump begins what may begin. s.mu is held.
func (s *Sender) pump(now time.Time) {
	if s.closing || !now.Before(s.fence) {
		return
	}
	for j := s.rota.next(now); j != nil; j = s.rota.next(now) {
		s.calls.Add(1)
		go s.send(j, j.lane.target)
	}
}

// every runs do until ctx ends, and says a failure once, not each time it is
// still there.
func (s *Sender) every(ctx context.Context, pause time.Duration, what string, do func(context.Context) error) {
	said := false
	for {
		err := do(ctx)
		if err != nil && !said && ctx.Err() == nil {
			s.log.WarnContext(ctx, what+"; tried again until it succeeds", "error", err)
		}
		said = err != nil
		if !sleep(ctx, pause) {
			return
		}
	}
}

// sleep is false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
