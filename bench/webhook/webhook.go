// Package webhook measures what tenants' endpoints are sent: how many small
// events a second a backlog leaves at, and what an endpoint that stalls costs the
// others.
//
// The sender is package webhook with Postgres behind it. The receivers are HTTP
// servers in the same process, each call with its signature, its row of the log
// and its place among the deliveries; they share the machine with all of it.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
)

// Config of a measurement.
type Config struct {
	Events   int           // of the backlog
	Tenants  int           // with an endpoint each
	Rate     int           // events a second to these tenants, and as many to one more
	For      time.Duration // of a round at that rate
	Rounds   int           // without a stalled endpoint, and as many with one, in turn
	Timeout  time.Duration // of a call
	Body     int           // bytes of an event's padding
	Engines  engine.Config
	Progress func(step string)
}

// Result of a measurement.
type Result struct {
	Name     string  `json:"name"`
	Events   int     `json:"events"`
	Tenants  int     `json:"tenants"`
	PerS     float64 `json:"events_per_s"` // from the sender's start until the last is noted
	SentPerS float64 `json:"sent_per_s"`   // until the last is received
	Rate     int     `json:"rate_per_s"`
	Rounds   int     `json:"rounds"`
	P50      float64 `json:"p50_ms"` // from handing over to receipt, while the one more answers; median of the rounds
	P99      float64 `json:"p99_ms"`
	StallP50 float64 `json:"stalled_p50_ms"` // the same while it stalls
	StallP99 float64 `json:"stalled_p99_ms"`
	Ratio    float64 `json:"healthy_p99_ratio"` // of the two p99
	Stalled  int64   `json:"stalled_calls"`     // that were never answered
	Lost     int64   `json:"lost"`
	Twice    int64   `json:"duplicates"`
	Postgres string  `json:"postgres"`
	Cores    int     `json:"cores"`
}

// Run measures.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	cfg.Progress("start Postgres")
	e, err := engine.Start(ctx, cfg.Engines)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	r := &run{cfg: cfg, db: e.DB, res: Result{
		Name: "webhook", Events: cfg.Events, Tenants: cfg.Tenants, Rate: cfg.Rate, Rounds: cfg.Rounds, Postgres: e.Postgres, Cores: runtime.NumCPU(),
	}}
	if err := r.prepare(ctx); err != nil {
		return Result{}, err
	}
	defer r.hear.close()
	for _, step := range []func(context.Context) error{r.backlog, r.paced} {
		if err := step(ctx); err != nil {
			return Result{}, err
		}
	}
	return r.res, nil
}

type run struct {
	cfg   Config
	db    *pgxpool.Pool
	store *webhook.Store
	hear  *receivers
	body  []byte
	res   Result
}

func (r *run) prepare(ctx context.Context) error {
	r.cfg.Progress(fmt.Sprintf("%d endpoints", r.cfg.Tenants))
	if err := pg.Migrate(ctx, r.db, incident.Migration(), webhook.Migration()); err != nil {
		return err
	}
	if err := webhook.EnsureDays(ctx, r.db); err != nil {
		return err
	}
	box, err := seal.New(make([]byte, seal.KeySize)) // what is sealed goes with the database
	if err != nil {
		return err
	}
	rules := guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	r.store = webhook.NewStore(r.db, box, guard.New(rules), webhook.StoreConfig{})
	r.body = fmt.Appendf(nil, `{"type":"bench","data":%q}`, strings.Repeat("x", r.cfg.Body))
	if r.hear, err = listen(ctx); err != nil {
		return err
	}
	for i := range r.cfg.Tenants {
		if _, err := r.endpoint(ctx, tenant(i), r.hear.wellURL); err != nil {
			return err
		}
	}
	return nil
}

func tenant(i int) string { return fmt.Sprint("tenant ", i) }

func (r *run) endpoint(ctx context.Context, tenant, url string) (webhook.Endpoint, error) {
	return r.store.Create(ctx, tenant, webhook.Settings{URL: url})
}

func (r *run) event(tenant string) webhook.Event {
	return webhook.Event{ID: event.NewID(), Tenant: tenant, Type: "bench", Body: r.body}
}

func (r *run) fan(ctx context.Context, events ...webhook.Event) error {
	return pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error { return r.store.Fan(ctx, tx, events...) })
}

// sender runs one until stop is called.
func (r *run) sender(ctx context.Context) (s *webhook.Sender, stop func() error) {
	s = webhook.NewSender(r.store, webhook.Config{Timeout: r.cfg.Timeout, Alone: true, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, func() error {
		cancel()
		return <-done
	}
}

// drained waits until nothing is due.
func (r *run) drained(ctx context.Context) error {
	for {
		var due bool
		err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL waybill.operator = 'on'`); err != nil {
				return err
			}
			return tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM webhook.due)`).Scan(&due)
		})
		if err != nil || !due {
			return err
		}
		if err := wait(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
