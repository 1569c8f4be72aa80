// Package alert decides when somebody must hear of a consumer group, and sees
// that they do.
//
// Rules read as sentences; see [Parse]. Each is held against each group. It
// fires when its sentence has been true for as long as it says, and clears when
// it has been false for as long; what is unknown changes nothing, in either
// direction. An alert that fires is a row of waybill.alerts until every sink was
// told of its end, and an incident: a restart, or a second process with the
// same rules, tells nobody anything twice.
//
// Sinks hear at least once of each alert's beginning and end. One that does not
// answer is asked again, ever more seldom, for a day, and holds up no other.
package alert

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
)

//go:embed migrations/*.sql
var files embed.FS

// Migration is the table of this package, for pg.Migrate.
func Migration() pg.Migration {
	return pg.Migration{Package: "alert", Schema: "waybill", Files: files}
}

// Reading is what is known of a group. Nil is unknown.
type Reading struct {
	Group       string
	Seconds     *float64 // behind, the greatest of its partitions that are known
	Partial     bool     // some partition's time is unknown
	Events      *int64   // behind
	Draining    *bool
	Members     *int
	DeadLetters *int64 // ever written
	ParkedKeys  *int64

	Known     bool // anything of it
	Stalled   bool
	Rewound   bool
	Overtaken bool   // by retention, or about to be
	Worst     string // for people: the partition it is about, and why
}

// Deps is what an Engine cannot do without.
type Deps struct {
	DB *pgxpool.Pool
	// Read gives the readings of now. While it fails nothing fires or clears.
	Read func(context.Context) ([]Reading, error)
}

// Config of an Engine. The zero value watches by the default rules and tells
// the log.
type Config struct {
	Rules  []Rule        // nil: Defaults
	Sinks  []Sink        // beside the log
	Every  time.Duration // between evaluations; default 5 s
	Look   time.Duration // between looks for what sinks are still to hear; default 1 s
	Logger *slog.Logger  // nil: slog.Default
}

// Engine evaluates rules.
type Engine struct {
	deps  Deps
	cfg   Config
	log   *slog.Logger
	sinks []Sink
	rules []*watch
}

// New makes an engine; it does nothing before Run.
func New(deps Deps, cfg Config) *Engine {
	if cfg.Rules == nil {
		cfg.Rules = Defaults()
	}
	if cfg.Every <= 0 {
		cfg.Every = 5 * time.Second
	}
	if cfg.Look <= 0 {
		cfg.Look = time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	e := &Engine{deps: deps, cfg: cfg, log: cfg.Logger}
	e.sinks = append([]Sink{logSink{cfg.Logger}}, cfg.Sinks...)
	for _, r := range cfg.Rules {
		e.rules = append(e.rules, newWatch(r))
	}
	return e
}

// Run evaluates every Config.Every until ctx ends, and returns nil then. While
// the database is away nothing is told; it is made up for later.
func (e *Engine) Run(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.deliver(ctx)
	}()
	defer func() { <-done }()
	loaded, said := false, ""
	tick := time.NewTicker(e.cfg.Every)
	defer tick.Stop()
	for {
		err := error(nil)
		if !loaded {
			err = e.load(ctx)
			loaded = err == nil
		}
		if loaded {
			err = e.evaluate(ctx, time.Now())
		}
		said = e.tell(ctx, said, err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tell logs a failure once, not each time it is still there.
func (e *Engine) tell(ctx context.Context, said string, err error) string {
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if err.Error() != said {
		e.log.WarnContext(ctx, "alerts are not evaluated", "error", err)
	}
	return err.Error()
}

// evaluate holds every rule against every group.
func (e *Engine) evaluate(ctx context.Context, now time.Time) error {
	readings, err := e.deps.Read(ctx)
	if err != nil {
		return fmt.Errorf("read lag: %w", err)
	}
	for _, w := range e.rules {
		for _, change := range w.see(now, readings) {
			if err := e.apply(ctx, w, change); err != nil {
				return err
			}
		}
	}
	return nil
}
