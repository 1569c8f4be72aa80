package tracking

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Run forgets what is old, now and then, until ctx ends.
func (t *Tracker) Run(ctx context.Context) error {
	turn := time.NewTicker(t.cfg.Sweep)
	defer turn.Stop()
	for {
		if err := t.Forget(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "tracking: forget what is old", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		}
	}
}

// sweepBatch bounds a transaction of the sweep.
const sweepBatch = 1000

// sweeps finds what to forget, at most $1 rows of what is older than $2. A trail
// without a ride that goes on is what a set of fixes wrote in the very moment
// its ride ended.
var sweeps = []string{
	`DELETE FROM tracking.positions WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM tracking.positions WHERE at < $2 ORDER BY at LIMIT $1))`,
	`DELETE FROM tracking.trail WHERE order_id = ANY (ARRAY(
		SELECT order_id FROM tracking.rides WHERE NOT active AND changed_at < $2 ORDER BY changed_at LIMIT $1))`,
	`DELETE FROM tracking.rides WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM tracking.rides WHERE NOT active AND changed_at < $2 ORDER BY changed_at LIMIT $1)) AND NOT active`,
}

// Forget drops what is older than Config.Keep and not under way.
func (t *Tracker) Forget(ctx context.Context) error {
	for {
		most := int64(0)
		before := t.cfg.Now().Add(-t.cfg.Keep)
		err := pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue(`SELECT set_config('waybill.tracking', 'on', true)`)
			for i, sql := range sweeps {
				b.Queue(sql, sweepBatch, before).Exec(func(ct pgconn.CommandTag) error {
					if i != 1 { // a ride has many fixes
						most = max(most, ct.RowsAffected())
					}
					return nil
				})
			}
			return tx.SendBatch(ctx, &b).Close()
		})
		if err != nil {
			return fmt.Errorf("forget positions and rides: %w", err)
		}
		if most < sweepBatch {
			return nil
		}
	}
}
