// Package lag watches how far consumer groups are behind, in events and in
// time, and says which of them need somebody.
//
// It promises that unknown is never zero: a figure nobody can vouch for is
// nil, and a broker or database that does not answer makes figures unknown and
// nothing else. Time behind is the age of the record that the group reads next,
// by that record's own timestamp. It is exact where the record was read; where
// it was not, since reads are bounded, it is estimated from when nearby offsets
// were written and says so.
//
// How far a group has come is what the database says (waybill.watermark), for
// groups that keep it there, and what was committed to the broker for others.
//
// A round costs a fixed number of requests whatever the number of groups: one
// listing and one description of groups, one request for all their offsets, one
// for metadata and two for the ends and starts of partitions, each per broker
// that has to answer it, and two queries.
//
// Limits: time behind is the producer's clock against this one's, and a lag in
// events counts offsets, which a compacted or transactional topic leaves out
// some of.
package lag

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Deps is what a monitor looks at.
type Deps struct {
	// Client makes a client of the broker; see broker.Config.Client.
	Client func(...kgo.Opt) (*kgo.Client, error)
	// DB holds watermarks and parked events; nil: there is only the broker.
	DB *pgxpool.Pool
}

// Config of a monitor. The zero value works.
type Config struct {
	Groups []string // only these; default all

	Every   time.Duration // between rounds; default 5 s
	Timeout time.Duration // of one round; default 10 s

	Late            time.Duration // time behind from which a partition is warned of; default 30 s
	Sustained       time.Duration // how long it must be late, and not draining, to fire; default 1 min
	StallAfter      time.Duration // without movement while behind; default 1 min
	RetentionWithin time.Duration // retention that will overtake a group so soon is told; default 10 min
	RewoundFor      time.Duration // how long a rewind is told; default 5 min

	// Reads bounds the records read for their timestamps, in a second over all
	// groups; default 200.
	Reads int
	// MaxPartitions bounds what is held, in pairs of a group and a partition;
	// default 200,000. What is beyond is left out and counted.
	MaxPartitions int
	// MetricPartitions is up to how many pairs metrics have a series each; above
	// it they are of whole topics. Default 10,000.
	MetricPartitions int

	Metrics prometheus.Registerer // nil: none
	Logger  *slog.Logger          // nil: slog.Default
}

func (c Config) withDefaults() Config {
	or(&c.Every, 5*time.Second)
	or(&c.Timeout, 10*time.Second)
	or(&c.Late, 30*time.Second)
	or(&c.Sustained, time.Minute)
	or(&c.StallAfter, time.Minute)
	or(&c.RetentionWithin, 10*time.Minute)
	or(&c.RewoundFor, 5*time.Minute)
	or(&c.Reads, 200)
	or(&c.MaxPartitions, 200_000)
	or(&c.MetricPartitions, 10_000)
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

// Monitor looks at groups, again and again in Run or once in Look.
type Monitor struct {
	deps     Deps
	cfg      Config
	cl       *kgo.Client
	requests *counter

	looking sync.Mutex // one round at a time
	memory  *memory
	stamps  *stamps
	parked  parkedRows
	round   int64
	refused string // the last error that was logged

	latest atomic.Pointer[Snapshot]
	ready  chan struct{}
}

// fetchVersion is the last one that names topics, which is what one has at
// hand here.
const fetchVersion = 12

// New makes a monitor. It connects when it first looks.
func New(deps Deps, cfg Config) (*Monitor, error) {
	cfg = cfg.withDefaults()
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(1, fetchVersion)
	requests := &counter{}
	cl, err := deps.Client(kgo.WithHooks(requests), kgo.MaxVersions(versions), kgo.RequestTimeoutOverhead(cfg.Timeout))
	if err != nil {
		return nil, fmt.Errorf("lag: %w", err)
	}
	m := &Monitor{deps: deps, cfg: cfg, cl: cl, requests: requests, memory: newMemory(), stamps: newStamps(), ready: make(chan struct{})}
	if cfg.Metrics != nil {
		if err := cfg.Metrics.Register(&collector{m}); err != nil {
			cl.Close()
			return nil, fmt.Errorf("register metrics of lag: %w", err)
		}
	}
	return m, nil
}

// Close ends the connections of a monitor that does not Run.
func (m *Monitor) Close() { m.cl.Close() }

// Run looks every Config.Every until ctx ends, and returns nil then. A round
// that fails makes figures unknown; it ends nothing.
func (m *Monitor) Run(ctx context.Context) error {
	defer m.Close()
	tick := time.NewTicker(m.cfg.Every)
	defer tick.Stop()
	for {
		m.Look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Latest is what the last round saw; nil before the first.
func (m *Monitor) Latest() *Snapshot { return m.latest.Load() }

// Ready is closed when the first round has ended, whatever it came to know.
func (m *Monitor) Ready() <-chan struct{} { return m.ready }

// Look makes one round. What it needs two rounds to know, as rates and whether
// anything moves, it knows from the rounds before.
func (m *Monitor) Look(ctx context.Context) *Snapshot {
	m.looking.Lock()
	defer m.looking.Unlock()
	began, before := time.Now(), m.requests.n.Load()
	asking, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	v := m.survey(asking)
	m.memory.see(v)
	m.stamps.see(v)
	m.readStamps(asking, v)
	m.round++
	s := m.judgeAll(v)
	s.Round = Round{
		Number: m.round, Took: time.Since(began).Seconds(), Requests: m.requests.n.Load() - before, Reads: v.reads,
	}
	m.tell(ctx, v)
	if m.latest.Swap(s) == nil {
		close(m.ready)
	}
	return s
}

// tell logs what went wrong once, not each time it still is.
func (m *Monitor) tell(ctx context.Context, v *survey) {
	said := v.problem()
	if said == m.refused || ctx.Err() != nil { // what fails while it stops fails of that
		return
	}
	m.refused = said
	if said != "" {
		m.cfg.Logger.WarnContext(ctx, "lag is not known", "error", said)
	}
}

func (m *Monitor) wants(group string) bool {
	return len(m.cfg.Groups) == 0 || slices.Contains(m.cfg.Groups, group)
}

// counter counts requests that were sent.
type counter struct{ n atomic.Int64 }

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (c *counter) OnBrokerE2E(kgo.BrokerMetadata, int16, kgo.BrokerE2E) { c.n.Add(1) }
