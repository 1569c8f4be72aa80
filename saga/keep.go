package saga

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	keepEvery  = 15 * time.Second
	pruneBatch = 500
)

// keep writes the plans down, forgets what ended long ago and counts for the
// gauges, until ctx ends.
func (o *Observer) keep(ctx context.Context) {
	t := time.NewTicker(max(min(keepEvery, o.cfg.Keep/4), 10*time.Millisecond))
	defer t.Stop()
	failing := false
	for {
		err := errors.Join(o.savePlans(ctx), o.prune(ctx), o.count(ctx))
		if err != nil && !failing && ctx.Err() == nil {
			o.log.WarnContext(ctx, "keep sagas", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// prune removes instances that ended long ago, their records with them, a batch
// in each transaction.
func (o *Observer) prune(ctx context.Context) error {
	for {
		var n int64
		err := within(ctx, o.deps.DB, "", func(tx pgx.Tx) error {
			done, err := tx.Exec(ctx, `DELETE FROM saga.instances WHERE id IN (
				SELECT id FROM saga.instances WHERE ended_at IS NOT NULL AND wake_at IS NULL
					AND updated_at < clock_timestamp() - $1 * interval '1 microsecond' AND saga = ANY ($2)
				ORDER BY updated_at LIMIT $3 FOR UPDATE SKIP LOCKED)`, o.cfg.Keep.Microseconds(), o.names(), pruneBatch)
			n = done.RowsAffected()
			return err
		})
		if err != nil {
			return fmt.Errorf("forget sagas that ended: %w", err)
		}
		if n < pruneBatch {
			return nil
		}
	}
}

func (o *Observer) savePlans(ctx context.Context) error {
	var errs []error
	for _, p := range o.plans {
		errs = append(errs, savePlan(ctx, o.deps.DB, *p))
	}
	return errors.Join(errs...)
}
