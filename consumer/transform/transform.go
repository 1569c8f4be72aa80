// Package transform runs handlers that make events of events: what they read,
// what they write and how far they have come are one transaction of the broker.
//
// It promises, for one group and every record of its topics, whatever dies in
// between:
//
//   - readers of committed records see what a handler made of a record exactly
//     once, and nothing of a transaction that was aborted;
//   - what is made of the records of a partition, and so of a key, is in the
//     order of those records, as far as it goes to one partition;
//   - a record that fails is tried again while its partition waits, then goes to
//     the dead letter topic, or ends as its policy says, in the same transaction
//     as what is around it;
//   - a failure of infrastructure counts against no record: the partition, or
//     the member, waits;
//   - a member that was taken over commits nothing more.
//
// Limits. Handlers must be functions of their input: one may be called several
// times for one record, and no effect elsewhere is undone with the transaction.
// A record that stands twice in its topic, as a relay that crashed may leave it,
// is transformed twice; ids of events are made from the input's, so that the
// second is recognised by whoever keeps ids, as groups of package consumer do.
// Readers that do not ask for committed records see what is aborted too. A group
// that was never here begins at the oldest record kept.
//
// There is no database. It needs a broker that keeps transactions across a
// crash, as Kafka does; on the embedded one [Group.Run] refuses.
package transform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// Broker makes clients. A broker.Config does.
type Broker interface {
	Client(opts ...kgo.Opt) (*kgo.Client, error)
	Transact(opts ...kgo.Opt) (*kgo.GroupTransactSession, error)
}

// Schemas gives the registry's id of a schema. A registry.Client does.
type Schemas interface {
	RegisterText(ctx context.Context, subject, text string) (int, error)
}

// Deps is what a group cannot do without.
type Deps struct {
	Broker  Broker
	Decoder consumer.Decoder
	Schemas Schemas // not needed by a group that makes no events
}

// Config of a group. Zero values of all but Group have defaults.
type Config struct {
	Group string // required

	// Member names this member among those of its group, as a host's name may.
	// A process that is started again under its name goes on at once; without
	// one, what it left open holds its partitions, and readers of what it wrote,
	// for TransactionTimeout and up to ten seconds. No two may have one name:
	// they would end each other's transactions.
	Member string

	Outputs  []*event.Contract // of the events handlers make
	Filter   consumer.Filter   // records it does not admit are passed over
	Workers  int               // handlers running at once; default 8
	MaxBatch int               // records of one transaction; default 5000

	// MaxBatchBytes is how much a transaction may read, and how much it may make;
	// default 8 MiB. It is exceeded by what the handlers at work make, or by a
	// single record.
	MaxBatchBytes int
	// MaxBatchTime is how long after the first handler of a transaction the last
	// may begin; default 500 ms. Rebalances wait for the transaction's end.
	MaxBatchTime time.Duration

	Timeout time.Duration // of a handler; default 30 s
	Drain   time.Duration // how long handlers may finish at shutdown; default 5 s

	// TransactionTimeout is after how long the broker aborts a transaction that
	// was not ended; default 30 s. It begins when handlers have finished.
	TransactionTimeout time.Duration

	// Policy of records that fail, by class of error; what it leaves out follows
	// Retry. Where nothing can be parked, a rule has Try and an end only, and a
	// dead record is passed: it holds no key.
	Policy consumer.Policy
	Retry  Retry

	// Infrastructure tells an error that is no fault of the record. Default: a
	// database or the registry cannot be asked.
	Infrastructure func(error) bool

	Metrics prometheus.Registerer // nil: none
	Logger  *slog.Logger          // nil: slog.Default
}

// Retry is what happens to a record that fails and whose error no rule of the
// policy knows: up to Attempts tries, Pause apart and twice that after each, at
// most PauseMax; then it is dead.
type Retry struct {
	Attempts int           // default 5
	Pause    time.Duration // default 100 ms
	PauseMax time.Duration // default 5 s
}

// Group is one group's member. Make it with [New], give it handlers with [On],
// then [Group.Run] it once.
type Group struct {
	deps    Deps
	cfg     Config
	log     *slog.Logger
	meter   *meter
	routes  map[routeKey]*route
	anys    map[string][]anyRoute // by topic
	faults  []error               // of registration, told by Run
	outputs map[*event.Contract]int
}

// New makes a member of a group that handles nothing yet.
func New(deps Deps, cfg Config) *Group {
	cfg = cfg.withDefaults()
	return &Group{
		deps: deps, cfg: cfg, log: cfg.Logger.With("group", cfg.Group),
		meter:  newMeter(cfg.Metrics, cfg.Group),
		routes: map[routeKey]*route{}, anys: map[string][]anyRoute{}, outputs: map[*event.Contract]int{},
	}
}

func (g *Group) check() error {
	switch {
	case g.cfg.Group == "":
		return errors.New("it has no name")
	case g.deps.Broker == nil || g.deps.Decoder == nil || g.deps.Schemas == nil && len(g.cfg.Outputs) > 0:
		return errors.New("a dependency is missing")
	case len(g.topics()) == 0:
		return errors.New("it handles nothing")
	}
	errs := append(g.faults, g.cfg.Filter.Check(), g.cfg.Policy.CheckUnparked())
	for _, topic := range g.topics() {
		errs = append(errs, consumer.CheckDeadTopic(topic, g.cfg.Group))
	}
	for _, c := range g.cfg.Outputs {
		if g.routes[routeKey{c.Topic, c.Type}] != nil {
			errs = append(errs, fmt.Errorf("it makes %s on %s and has a handler for it: it would never end", c.Type, c.Topic))
		}
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	or(&c.Workers, 8)
	or(&c.MaxBatch, 5000)
	or(&c.MaxBatchBytes, 8<<20)
	or(&c.MaxBatchTime, 500*time.Millisecond)
	or(&c.Timeout, 30*time.Second)
	or(&c.Drain, 5*time.Second)
	or(&c.TransactionTimeout, 30*time.Second)
	or(&c.Retry.Attempts, 5)
	or(&c.Retry.Pause, 100*time.Millisecond)
	or(&c.Retry.PauseMax, 5*time.Second)
	if c.Infrastructure == nil {
		c.Infrastructure = consumer.OutOfReach
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
