// Package consumer runs handlers of events whose effects are in Postgres.
//
// It promises, for one group and every event of the types it handles:
//
//   - the handler's effects are committed exactly once, whatever dies in
//     between, since the claim on the event's id in the inbox commits with them;
//   - events of one key reach the handler in the order of their partition, also
//     across retries, parking, restarts and rebalances;
//   - an event that fails stops its own key only: it is parked, and what comes
//     behind it under the same key queues up behind it. One that its policy gives
//     up is dead: it keeps its place until it is redriven or dropped;
//   - a failure of infrastructure counts against no event: the group waits;
//   - a member that has lost a partition without noticing begins nothing more
//     on it, and neither parks nor saves.
//
// Events that would have to wait for a worker share a transaction: a handler
// sees what those before it in the transaction have done, and all of it commits
// or fails with it. If it fails, it is done again in parts, until an event that
// fails stands alone.
//
// That is the default; [Ordering] and [Delivery] choose others. Order between keys is not kept. A key that moves to another partition, as it
// does when a topic gets more of them, keeps its order within each partition
// only, unless [Gaps] are held. Effects outside the transaction are at-least-once. An event is
// recognised as handled for as long as the inbox keeps the partition of its
// day.
//
// The database is the truth about how far the group has come. The offsets
// committed to the broker follow it about once a second, for others to see,
// and are never read.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Decoder reads a record's value into what into points to, as a reader of
// schema reader sees it. A registry.Decoder does.
type Decoder interface {
	Decode(ctx context.Context, value []byte, into any, reader *avro.Schema) error
}

// Deps is what a group cannot do without.
type Deps struct {
	// DB holds the effects, the inbox, the watermark and the parked events.
	// Give it at least as many connections as the group has workers, and two.
	DB *pgxpool.Pool
	// Owner owns the runtime's tables and drops days of the inbox that have
	// passed. It is DB where that is nil, which then must own them.
	Owner *pgxpool.Pool
	// Client makes a client of the broker; see broker.Config.Client.
	Client  func(...kgo.Opt) (*kgo.Client, error)
	Decoder Decoder
}

// From is where a group begins that has never been here.
type From int

const (
	// Beginning is the oldest record kept.
	Beginning From = iota
	// Now is the end of each topic at the group's first assignment of it.
	// Partitions it gets later are read from their beginning.
	Now
)

// Config of a group. Zero values of all but Group have defaults.
type Config struct {
	Group string // required

	From             From
	Protocol         Protocol      // how members share partitions out; default Classic
	Ordering         Ordering      // what is handled one after another; default ByKey
	Delivery         Delivery      // default Once
	Filter           Filter        // records it does not admit are passed over
	Tenants          Tenants       // whose events there is anything to do with; nil: everybody's
	Workers          int           // handlers running at once; default 8
	MaxInFlight      int           // records held in memory; default 8192
	MaxInFlightBytes int           // and their size, exceeded by one fetch at most (8 MiB); default 32 MiB
	Timeout          time.Duration // of one attempt of a handler, or of those that share a transaction; default 30 s
	FlushEvery       time.Duration // between advances of watermark and offsets; default 1 s

	// Gather is the least time between two polls that brought records; default 0.
	// What comes in while nothing is awaited is handled at once; under a stream of
	// events each transaction then holds those of about so long, and the broker is
	// asked as seldom: many times less work for both, where nobody waits for each
	// event. What an event may wait more is twice as long.
	Gather time.Duration

	// Gaps is what is done about events that are missing, and GapWait how long one
	// behind them waits; default 1 min. Each event's number is then kept by key,
	// in its transaction: a statement more for each transaction.
	Gaps    Gaps
	GapWait time.Duration

	Policy Policy // of events that fail, by class of error; what it leaves out follows Retry
	Retry  Retry

	// MaxBatch is how many events share a transaction at most, when more keys
	// are ready than workers, or a key has several: default 64, and 1000 for the
	// handlers of OnBatch. With 1 each event has its own.
	MaxBatch int

	// Together is how long the handlers of one transaction should take together;
	// default 20 ms. One that takes longer runs alone: whoever shares its
	// transaction would wait for it while other workers are free.
	Together time.Duration

	// Places, if any, are shared with other groups of the program, whose
	// transactions take turns at them.
	Places *Places

	// StallAfter is how long a partition may have records and not get past the
	// first of them, while nothing that is known holds it up, before it is told;
	// default twice Timeout.
	StallAfter time.Duration

	// InboxKeep is how long the inbox remembers events, by their own time: default
	// 8 days, longer than topics keep them by default. An older one that may have
	// been handled is parked rather than handled again. The inbox is shared: the
	// group that keeps longest decides. Less than a day is a day.
	InboxKeep time.Duration

	// Drain is how long handlers may finish at a rebalance or shutdown; default
	// 5 s. A member that was killed holds its partitions for 8 s more.
	Drain time.Duration

	// Infrastructure tells an error that is no fault of the event, which waits
	// with its key until it is gone; if the database is out of reach the group
	// waits. Default: the database or the registry is. An event that loses its
	// connection a dozen times in a row to a database that answers is at fault
	// all the same.
	Infrastructure func(error) bool

	Metrics prometheus.Registerer // nil: none
	Logger  *slog.Logger          // nil: slog.Default
}

// Retry is what happens to an event that fails and whose error no rule of the
// policy knows: up to Attempts tries in place, within Within of the first, Pause
// apart and twice that after each; then it is parked and tried ParkAttempts times
// more, after Park, ParkFactor times that after each failure, at most ParkMax;
// then it is dead.
//
// With the defaults an event dies one and a half to three hours after it first
// failed: long enough to notice and mend most things, short enough that somebody
// hears of the rest.
type Retry struct {
	Attempts     int           // default 3
	Within       time.Duration // of tries in place, also those of a rule; default 2 s
	Pause        time.Duration // default 100 ms
	ParkAttempts int           // default 10
	Park         time.Duration // default 1 s
	ParkFactor   float64       // default 3
	ParkMax      time.Duration // default 1 h
}

// Group is one consumer group's member. Make it with [New], give it handlers
// with [On], then [Group.Run] it once.
type Group struct {
	deps   Deps
	cfg    Config
	log    *slog.Logger
	meter  *meter
	dead   *deadMeter
	routes map[routeKey]*route
	anys   map[string][]anyRoute // by topic
	pass   *route                // of events that are only counted
	faults []error               // of registration, told by Run

	workers atomic.Int64            // how many there are to be
	running atomic.Pointer[session] // the last that began
}

// New makes a member of a group that handles nothing yet.
func New(deps Deps, cfg Config) *Group {
	cfg = cfg.withDefaults()
	if deps.Owner == nil {
		deps.Owner = deps.DB
	}
	g := &Group{
		deps:   deps,
		cfg:    cfg,
		log:    cfg.Logger.With("group", cfg.Group),
		meter:  newMeter(cfg.Metrics, cfg.Group),
		dead:   newDeadMeter(cfg.Metrics, cfg.Group),
		routes: map[routeKey]*route{},
		anys:   map[string][]anyRoute{},
		pass:   newPass(),
	}
	g.SetWorkers(cfg.Workers)
	return g
}

// Run consumes until ctx ends, and returns nil once handlers have finished or
// Config.Drain is over, positions are saved and nothing it started runs on.
// It returns early only for what waiting cannot mend.
func (g *Group) Run(ctx context.Context) error {
	if err := g.check(); err != nil {
		return fmt.Errorf("consumer group %s: %w", g.cfg.Group, err)
	}
	if err := g.run(ctx); err != nil {
		return fmt.Errorf("consumer group %s: %w", g.cfg.Group, err)
	}
	return nil
}

func (g *Group) check() error {
	switch {
	case g.cfg.Group == "":
		return errors.New("it has no name")
	case g.deps.DB == nil || g.deps.Client == nil || g.deps.Decoder == nil:
		return errors.New("a dependency is missing")
	case len(g.allRoutes()) == 0:
		return errors.New("it handles nothing")
	}
	return errors.Join(append(g.faults, g.cfg.Filter.check(), g.fitting(), g.cfg.checkGaps(), g.cfg.Protocol.check(), g.cfg.Policy.check(), g.checkDeadTopics())...)
}

func (c Config) withDefaults() Config {
	or(&c.Workers, 8)
	or(&c.MaxInFlight, 8192)
	or(&c.MaxInFlightBytes, 32<<20)
	or(&c.Timeout, 30*time.Second)
	or(&c.Drain, 5*time.Second)
	or(&c.FlushEvery, time.Second)
	or(&c.Together, 20*time.Millisecond)
	or(&c.StallAfter, 2*c.Timeout)
	or(&c.GapWait, time.Minute)
	or(&c.InboxKeep, 8*24*time.Hour)
	c.InboxKeep = max(c.InboxKeep, 24*time.Hour)
	or(&c.Retry.Attempts, 3)
	or(&c.Retry.Within, 2*time.Second)
	or(&c.Retry.Pause, 100*time.Millisecond)
	or(&c.Retry.Park, time.Second)
	or(&c.Retry.ParkAttempts, 10)
	or(&c.Retry.ParkMax, time.Hour)
	or(&c.Retry.ParkFactor, 3)
	if c.Infrastructure == nil {
		c.Infrastructure = outOfReach
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func or[T int | float64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}
