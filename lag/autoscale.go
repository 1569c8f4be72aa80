package lag

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
)

// AutoscalerDeps is what an Autoscaler cannot do without.
type AutoscalerDeps struct {
	Workers Workers // of this process: a consumer.Group
	// DB is the pool the handlers work on, which bounds how many can, and where
	// the group's place is.
	DB *pgxpool.Pool
	// Monitor, which runs, has what is known of the group. Without one the
	// Autoscaler looks itself, by Client, at this group alone.
	Monitor *Monitor
	Client  func(...kgo.Opt) (*kgo.Client, error) // see broker.Config.Client
}

// AutoscalerConfig says whose workers, and within what bounds. Of Max the
// default is 64 or what the pool bears, if that is less.
type AutoscalerConfig struct {
	ScalerConfig
	Group string // required
	// NoConnection is for handlers that hold no connection, as those of
	// consumer.OnEvent: the pool then bounds nothing.
	NoConnection bool
	Logger       *slog.Logger // nil: slog.Default
}

// Autoscaler has the workers of this process follow the lag of its group.
//
// Each member of a group sees the whole of it, so several with the same bounds
// grow and shrink together. Workers help where handlers wait, for a disk or
// for somebody else, and there are keys enough; where processors are the limit
// growing is no use, which it notices, and more processes are needed.
type Autoscaler struct {
	deps   AutoscalerDeps
	cfg    AutoscalerConfig
	scaler *Scaler
	pace   pace
}

// spareConnections are those of the pool that no worker needs: the group saves
// its place by one, and somebody asks for lag by another.
const spareConnections = 2

// NewAutoscaler sets the workers to Config.Min. It refuses bounds that cannot
// be kept.
func NewAutoscaler(deps AutoscalerDeps, cfg AutoscalerConfig) (*Autoscaler, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.bound(deps.DB); err != nil {
		return nil, fmt.Errorf("autoscale group %s: %w", cfg.Group, err)
	}
	if deps.Workers == nil || deps.Monitor == nil && deps.Client == nil {
		return nil, fmt.Errorf("autoscale group %s: a dependency is missing", cfg.Group)
	}
	cfg.ScalerConfig = cfg.withDefaults()
	a := &Autoscaler{deps: deps, cfg: cfg}
	a.scaler = NewScaler(changes{a}, cfg.ScalerConfig)
	return a, nil
}

// bound holds the bounds against each other and against the pool: a worker
// without a connection waits, and its time counts as the handler's.
func (c *AutoscalerConfig) bound(db *pgxpool.Pool) error {
	switch {
	case c.Group == "":
		return errors.New("it has no name")
	case c.Min < 0 || c.Max < 0 || c.Max > 0 && c.Max < c.Min:
		return fmt.Errorf("%d to %d workers: want them above zero, and the most not below the least", c.Min, c.Max)
	case db == nil || c.NoConnection:
		return nil
	}
	room := int(db.Config().MaxConns) - spareConnections
	if most := max(c.Min, c.Max, 1); most > room {
		return fmt.Errorf("%d workers need a pool of %d connections, and it has %d: give it more (pg.Config.MaxConns, or pool_max_conns in the connection string), or allow at most %d workers",
			most, most+spareConnections, room+spareConnections, max(room, 0))
	}
	if c.Max == 0 {
		c.Max = max(min(64, room), c.Min)
	}
	return nil
}

// Run follows the lag until ctx ends, and returns nil then. What nobody knows
// leaves the workers as they are.
func (a *Autoscaler) Run(ctx context.Context) error {
	look := func(context.Context) *Snapshot { return a.deps.Monitor.Latest() }
	if a.deps.Monitor == nil {
		m, err := New(Deps{Client: a.deps.Client, DB: a.deps.DB}, Config{
			Groups: []string{a.cfg.Group}, Every: a.cfg.Every, Reads: 1, Logger: a.cfg.Logger, // ages are not needed here
		})
		if err != nil {
			return fmt.Errorf("autoscale group %s: %w", a.cfg.Group, err)
		}
		defer m.Close()
		look = m.Look
	}
	return a.scaler.Run(ctx, func(ctx context.Context) (Load, error) {
		return a.pace.load(look(ctx), a.cfg.Group), nil
	})
}

// changes tells of each change before it is made.
type changes struct{ a *Autoscaler }

func (t changes) SetWorkers(n int) {
	log, s := t.a.cfg.Logger, t.a.scaler
	if s == nil {
		log.Info("workers follow the lag", "group", t.a.cfg.Group, "workers", n, "min", t.a.cfg.Min, "max", t.a.cfg.Max, "goal", t.a.cfg.Goal)
	} else {
		log.Info("workers changed", "group", t.a.cfg.Group, "workers", n, "why", s.Why())
	}
	t.a.deps.Workers.SetWorkers(n)
}
