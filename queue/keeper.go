package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// KeeperConfig is what may be set; its zero value works.
type KeeperConfig struct {
	Every      time.Duration         // between rounds, 15 s if zero
	Registerer prometheus.Registerer // takes the gauges of the queues
	Logger     *slog.Logger          // slog.Default() if nil
}

// Keeper does for all queues what needs no worker: it drops what has expired
// and what is forgotten (dedupe ids, old dead letters), and counts for the
// gauges. Several may run; one is enough. Queues work without, but grow.
type Keeper struct {
	db  *pgxpool.Pool
	cfg KeeperConfig

	mu    sync.Mutex
	stats []Stats // of the last count; nil: unknown
}

// maxGauged is how many queues have gauges: their names are labels, and tenants
// make queues as they like.
const maxGauged = 1000

// NewKeeper makes a keeper of all queues in db.
func NewKeeper(db *pgxpool.Pool, cfg KeeperConfig) *Keeper {
	if cfg.Every == 0 {
		cfg.Every = 15 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	k := &Keeper{db: db, cfg: cfg}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(gauges{k})
	}
	return k
}

// Run keeps until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	failing := false
	var counting pace
	for {
		err := k.round(ctx)
		if counting.may(0) {
			began := time.Now()
			err = errors.Join(err, k.count(ctx))
			counting.spent(began)
		}
		if err != nil && !failing && ctx.Err() == nil {
			k.cfg.Logger.WarnContext(ctx, "keep queues", "error", err)
		}
		failing = err != nil
		if !pause(ctx, k.cfg.Every) {
			return nil
		}
	}
}

// round goes over the queues, each piece of work in small transactions.
func (k *Keeper) round(ctx context.Context) error {
	rows, err := k.db.Query(ctx, `SELECT tenant, name FROM waybill.queues`)
	if err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	places, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p place, err error) {
		return p, row.Scan(&p.tenant, &p.name)
	})
	if err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	var errs []error
	for _, p := range places {
		q := New(k.db, Config{Tenant: p.tenant, Name: p.name})
		errs = append(errs, repeat(ctx, q.expire), repeat(ctx, q.forgetIDs), repeat(ctx, q.forgetDead))
	}
	return errors.Join(errs...)
}

// repeat does a piece of work as long as there is a whole batch of it.
func repeat(ctx context.Context, do func(context.Context) (int64, error)) error {
	for {
		if n, err := do(ctx); err != nil || n < upkeepBatch {
			return err
		}
	}
}

func (q *Queue) forgetIDs(ctx context.Context) (int64, error) {
	tag, err := q.db.Exec(ctx, `
		DELETE FROM waybill.queue_dedupe WHERE queue = `+queueNumber+` AND expires_at <= now() AND dedupe_id = ANY (ARRAY(
			SELECT dedupe_id FROM waybill.queue_dedupe WHERE queue = `+queueNumber+` AND expires_at <= now()
			ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED))`, q.cfg.Tenant, q.cfg.Name, upkeepBatch)
	if err != nil {
		return 0, fmt.Errorf("forget dedupe ids of queue %s: %w", q.cfg.Name, err)
	}
	return tag.RowsAffected(), nil
}

func (q *Queue) forgetDead(ctx context.Context) (int64, error) {
	tag, err := q.db.Exec(ctx, `
		DELETE FROM waybill.queue_dead WHERE queue = `+queueNumber+` AND id = ANY (ARRAY(
			SELECT d.id FROM waybill.queue_dead d JOIN waybill.queues q ON q.id = d.queue
			WHERE q.tenant = $1 AND q.name = $2 AND d.died_at <= now() - q.keep_dead_ms * interval '1 ms'
			ORDER BY d.died_at LIMIT $3 FOR UPDATE OF d SKIP LOCKED))`, q.cfg.Tenant, q.cfg.Name, upkeepBatch)
	if err != nil {
		return 0, fmt.Errorf("forget dead letters of queue %s: %w", q.cfg.Name, err)
	}
	return tag.RowsAffected(), nil
}

func (k *Keeper) count(ctx context.Context) error {
	if k.cfg.Registerer == nil {
		return nil
	}
	all, err := readStats(ctx, k.db, statsSQL+`ORDER BY q.id LIMIT $1`, maxGauged)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats = all // nil after a failure: unknown is not shown as it was
	return err
}
