package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// Outbox writes events in a transaction. An outbox.Outbox that was made with
// the contracts of package saga/contracts among its own does.
type Outbox interface {
	Add(ctx context.Context, tx pgx.Tx, events ...event.Data) error
}

// Deps is what an observer cannot do without.
type Deps struct {
	// DB holds the records, the inbox and the outbox. Give it at least as many
	// connections as there are workers, and four.
	DB *pgxpool.Pool
	// Client makes a client of the broker; see broker.Config.Client.
	Client  func(...kgo.Opt) (*kgo.Client, error)
	Decoder consumer.Decoder
	Outbox  Outbox
}

// Config is what may be set; its zero value works.
type Config struct {
	// Group is the consumer group that all the sagas are observed in; default
	// "saga". Two observers that declare different sagas need two groups.
	Group   string
	Workers int             // transactions at once; 1 if zero, which then hold many events each
	Filter  consumer.Filter // events it does not admit are passed over
	Gather  time.Duration   // the least time between two polls; see consumer.Config

	// Every is between two looks for what is overdue; default 1 s.
	Every time.Duration
	// Standstill is how long the group may read nothing on while events of its
	// topics are unread, until steps are called overdue all the same; default 30 s.
	Standstill time.Duration
	// Keep is how long instances are kept after they ended; default 30 days.
	Keep time.Duration

	Metrics prometheus.Registerer // nil: none
	Logger  *slog.Logger          // nil: slog.Default
}

// Observer keeps the records of sagas and watches their deadlines. Several
// processes may run one each, of the same sagas: they share the work.
type Observer struct {
	deps  Deps
	cfg   Config
	log   *slog.Logger
	meter *meter
	plans map[string]*plan
	marks map[string][]mark // by type of event
	types []listened        // one of each type
}

// mark is what events of a type mean to a saga.
type mark struct {
	plan  *plan
	what  What
	step  string
	round func(e any) int
}

// New makes an observer of sagas, which must be declared soundly.
func New(deps Deps, cfg Config, sagas ...Saga) (*Observer, error) {
	if cfg.Group == "" {
		cfg.Group = "saga"
	}
	if cfg.Workers <= 0 {
		cfg.Workers = 1
	}
	for v, def := range map[*time.Duration]time.Duration{&cfg.Every: time.Second, &cfg.Standstill: 30 * time.Second, &cfg.Keep: 30 * 24 * time.Hour} {
		if *v <= 0 {
			*v = def
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	o := &Observer{deps: deps, cfg: cfg, log: cfg.Logger.With("part", "saga"), plans: map[string]*plan{}, marks: map[string][]mark{}}
	if deps.DB == nil || deps.Client == nil || deps.Decoder == nil || deps.Outbox == nil {
		return nil, errors.New("saga: a dependency is missing")
	}
	if len(sagas) == 0 {
		return nil, errors.New("saga: there is nothing to observe: give it a saga")
	}
	for _, s := range sagas {
		if err := s.check(); err != nil {
			return nil, err
		}
		if o.plans[s.Name] != nil {
			return nil, fmt.Errorf("saga %s is declared twice", s.Name)
		}
		o.declare(s)
	}
	o.meter = newMeter(cfg.Metrics, cfg.Group)
	return o, nil
}

func (o *Observer) declare(s Saga) {
	p := planOf(s)
	o.plans[s.Name] = &p
	o.add(&p, Started, "", s.Start)
	o.add(&p, Aborted, "", s.Abort)
	for _, st := range s.Steps {
		o.add(&p, Done, st.Name, st.Done)
		o.add(&p, Failed, st.Name, st.Failed)
		o.add(&p, Undone, st.Name, st.Undone)
	}
}

func (o *Observer) add(p *plan, what What, step string, events Events) {
	for _, e := range events {
		if len(o.marks[e.contract.Type]) == 0 {
			o.types = append(o.types, e)
		}
		o.marks[e.contract.Type] = append(o.marks[e.contract.Type], mark{p, what, step, e.round})
	}
}

// Run observes until ctx ends, and returns nil once all it started has stopped.
// It returns early only for what waiting cannot mend.
func (o *Observer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return o.group().Run(ctx) })
	g.Go(func() error { return o.watch(ctx) })
	g.Go(func() error { o.keep(ctx); return nil })
	return g.Wait()
}

// group records what is seen. Events of a key come by several partitions: of two
// transactions at once that held several keys each, each would wait for the
// other. So it is one at a time with all that waits in it, or several with one
// event each. Two processes may meet all the same; then one of them tries again.
func (o *Observer) group() *consumer.Group {
	most := 0 // as the group sees fit
	if o.cfg.Workers > 1 {
		most = 1
	}
	g := consumer.New(consumer.Deps{DB: o.deps.DB, Client: o.deps.Client, Decoder: o.deps.Decoder}, consumer.Config{
		Group: o.cfg.Group, Workers: o.cfg.Workers, Filter: o.cfg.Filter, MaxBatch: most,
		FlushEvery: min(o.cfg.Every, time.Second), Gather: o.cfg.Gather, Metrics: o.cfg.Metrics, Logger: o.cfg.Logger,
	})
	for _, l := range o.types {
		l.listen(g, o.record)
	}
	consumer.On(g, o.askWasHeard)
	consumer.On(g, o.skipWasHeard)
	return g
}

func (o *Observer) topics() (all []string) {
	for _, l := range o.types {
		if !slices.Contains(all, l.contract.Topic) {
			all = append(all, l.contract.Topic)
		}
	}
	return all
}

// execer is a pool, a connection or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}
