// Package analytics measures how fast the log of events and the figures of
// deliveries are kept in Postgres, against COPY of the same rows into a table of
// the same form.
//
// The group runs in this process, as it does in the program; the broker is
// another process. What was kept is read back and held against what was
// published.
package analytics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/registry"
)

// Config is what to measure.
type Config struct {
	Engines engine.Config
	Events  int64 // about as many; orders are told whole

	Progress func(step string) // hears what is being done; may be nil
}

// Check refuses what cannot be measured, saying why.
func Check(cfg Config) error {
	if cfg.Events < 10_000 || cfg.Events > 5_000_000 {
		return fmt.Errorf("%d events: want 10000 to 5000000", cfg.Events)
	}
	return nil
}

// Result is one run. What was not measured is nil.
type Result struct {
	Name   string `json:"name"`
	Events int64  `json:"events"`
	Orders int64  `json:"orders"` // whose events they are

	// Kept is the log and all figures, each event once, by one worker; Copy is
	// COPY of the log's rows, 1000 a transaction, on one connection, into a table
	// with the log's primary key; and their ratio.
	Kept   float64 `json:"events_per_s"`
	Copy   float64 `json:"limit_events_per_s"`
	VsCopy float64 `json:"ratio"`

	CPU         *float64 `json:"cpu_s"`           // of this process, while it kept them
	PostgresCPU *float64 `json:"postgres_cpu_s"`  // of the sessions it used meanwhile, where they are on this machine
	CopyCPU     *float64 `json:"copy_cpu_s"`      // of the session that copied
	Peak        *float64 `json:"rss_mb"`          // of this process
	BytesEach   float64  `json:"bytes_per_event"` // of the log, its index included
	Lost        int64    `json:"lost"`
	Duplicates  int64    `json:"duplicates"` // of figures: more than were told
	Postgres    string   `json:"postgres"`
	Cores       int      `json:"cores"`
	Seconds     float64  `json:"took_s"`
}

// run is one measurement under way.
type run struct {
	cfg      Config
	engines  *engine.Engines
	db       *pgxpool.Pool
	registry *registry.Client
	told     *told
	res      Result
}

// Run measures. It stops and removes what it started, also if ctx ends.
func Run(ctx context.Context, cfg Config) (_ Result, err error) {
	if err := Check(cfg); err != nil {
		return Result{}, err
	}
	began := time.Now()
	r := &run{cfg: cfg, res: Result{Name: "analytics", Cores: runtime.NumCPU()}}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	patience := time.Minute + time.Duration(cfg.Events)*2*time.Millisecond
	for _, s := range []struct {
		name  string
		limit time.Duration
		fn    func(context.Context) error
	}{
		{"start Postgres, broker and registry", 3 * time.Minute, r.start},
		{"make tables and topics", time.Minute, r.prepare},
		{fmt.Sprintf("publish %d events", cfg.Events), patience, r.publish},
		{"keep the log and the figures", patience, r.keep},
		{"read them back", patience, r.verify},
		{"COPY of the same rows", patience, r.limit},
	} {
		if cfg.Progress != nil {
			cfg.Progress(s.name)
		}
		bounded, cancel := context.WithTimeout(ctx, s.limit)
		err := s.fn(bounded)
		cancel()
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	r.res.VsCopy = r.res.Kept / r.res.Copy
	if u := child.UsageOf(os.Getpid()); u.Known {
		r.res.Peak = &u.Peak
	}
	r.res.Postgres, r.res.Seconds = r.engines.Postgres, time.Since(began).Seconds()
	return r.res, nil
}

func (r *run) start(ctx context.Context) (err error) {
	if len(r.cfg.Engines.Broker.Brokers) > 0 {
		return errors.New("the topics are the product's own, which a broker of yours may have: leave WAYBILL_KAFKA_BROKERS out, and a broker is started for it")
	}
	r.engines, err = engine.Start(ctx, r.cfg.Engines)
	return err
}

func (r *run) prepare(ctx context.Context) (err error) {
	if r.db, err = pg.Open(ctx, r.engines.DSN, pg.Config{ApplicationName: "waybill bench", MaxConns: 4}); err != nil {
		return err
	}
	if err := pg.Migrate(ctx, r.db, incident.Migration(), consumer.Migrations(), projection.Migration(), analytics.Migration()); err != nil {
		return err
	}
	if err := errors.Join(consumer.EnsureDays(ctx, r.db), r.log().EnsureDays(ctx, time.Now())); err != nil {
		return err
	}
	if r.registry, err = registry.New(r.engines.RegistryURL, registry.Config{}); err != nil {
		return err
	}
	var topics []string
	for _, s := range analytics.Sources() {
		topics = append(topics, s.Topic)
	}
	if err := r.engines.Declare(ctx, topics...); err != nil {
		return err
	}
	ids, err := r.registry.Register(ctx, sr.CompatNone.String(), contracts.All()...)
	r.told = newTold(ids)
	return err
}

func (r *run) log() *projection.Log {
	return projection.NewLog(r.db, projection.LogConfig{Logger: slog.New(slog.DiscardHandler)})
}

// timed notes when the first events came and how many there were.
type timed struct {
	projection.Sink
	goal, n     int64
	first, last time.Time
	done        chan struct{}
}

func (t *timed) Write(ctx context.Context, tx pgx.Tx, es []projection.Event) error {
	if t.n == 0 {
		t.first = time.Now()
	}
	err := t.Sink.Write(ctx, tx, es)
	if err == nil {
		if t.n += int64(len(es)); t.n >= t.goal && t.last.IsZero() {
			t.last = time.Now()
			close(t.done)
		}
	}
	return err
}

func (r *run) keep(ctx context.Context) error {
	decoder := registry.NewDecoder(r.registry)
	t := &timed{Sink: analytics.NewProjector(r.log(), decoder), goal: r.res.Events, done: make(chan struct{})}
	g := consumer.New(consumer.Deps{DB: r.db, Client: r.engines.Broker.Client, Decoder: decoder},
		consumer.Config{Group: "analytics." + r.engines.Name(), Workers: 1, MaxInFlight: 20_000, Logger: slog.New(slog.DiscardHandler)})
	projection.Subscribe(g, decoder, t, analytics.Sources()...)
	before, served := child.UsageOf(os.Getpid()), r.sessions(ctx)
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- g.Run(running) }()
	select {
	case <-t.done:
	case err := <-ended:
		return errors.Join(err, fmt.Errorf("the group ended with %d of %d events kept", t.n, t.goal))
	}
	if after := child.UsageOf(os.Getpid()); after.Known && before.Known {
		cpu := after.CPU - before.CPU
		r.res.CPU = &cpu
	}
	r.res.PostgresCPU = since(served, r.sessions(ctx))
	r.res.Kept = float64(t.goal) / t.last.Sub(t.first).Seconds()
	stop()
	return <-ended
}

// sessions is the processor's time of this database's sessions so far, nil where
// their processes cannot be seen.
func (r *run) sessions(ctx context.Context) *float64 {
	rows, err := r.db.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`)
	if err != nil {
		return nil
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil
	}
	sum := 0.0
	for _, pid := range pids {
		u := child.UsageOf(int(pid))
		if !u.Known {
			return nil
		}
		sum += u.CPU
	}
	return &sum
}

func since(from, to *float64) *float64 {
	if from == nil || to == nil {
		return nil
	}
	d := *to - *from
	return &d
}

func (r *run) close(ctx context.Context) error {
	if r.registry != nil {
		r.registry.Close()
	}
	if r.db != nil {
		r.db.Close()
	}
	if r.engines == nil {
		return nil
	}
	return r.engines.Close(ctx)
}
