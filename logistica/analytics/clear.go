package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/projection"
)

// Clear empties the log of events and every table of this package. Do it while
// no member of the group runs, and reset the group: it then makes them anew from
// what the topics keep.
func Clear(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `TRUNCATE analytics.events, analytics.order_count, analytics.orders_by_hour, analytics.orders_by_minute,
		analytics.deliveries, analytics.fees_by_day, analytics.courier_duty, analytics.courier_hours`)
	if err != nil {
		return fmt.Errorf("clear analytics: %w", err)
	}
	return nil
}

// How long rows are kept.
const (
	keepMinutes    = 2 * 24 * time.Hour
	keepDeliveries = 92 * 24 * time.Hour
	keepHours      = 400 * 24 * time.Hour // fees and counts: a year, and what one compares it with
)

// Prune deletes what is older than it is kept, in small transactions, each hour
// until ctx ends. What fails is told to tell and done an hour later.
func Prune(ctx context.Context, pool *pgxpool.Pool, tell func(error)) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for now := time.Now(); ; {
		if err := prune(ctx, pool, now); err != nil && ctx.Err() == nil {
			tell(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case now = <-tick.C:
		}
	}
}

// pruneAtOnce bounds one statement.
const pruneAtOnce = 5000

func prune(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	for _, p := range []struct {
		table, old string
		before     any
	}{
		// Orders' ids carry the moment of their creation.
		{`deliveries`, `order_id < $1`, event.IDFloor(now.Add(-keepDeliveries))},
		{`orders_by_minute`, `minute < $1`, now.Add(-keepMinutes)},
		{`orders_by_hour`, `hour < $1`, now.Add(-keepHours)},
		{`fees_by_day`, `day < $1::date`, now.Add(-keepHours)},
		{`courier_hours`, `hour < $1`, now.Add(-keepHours)},
	} {
		for n := int64(pruneAtOnce); n == pruneAtOnce; {
			err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, projection.Operator); err != nil {
					return err
				}
				tag, err := tx.Exec(ctx, `WITH old AS MATERIALIZED (SELECT ctid FROM analytics.`+p.table+` WHERE `+p.old+` LIMIT $2)
					DELETE FROM analytics.`+p.table+` WHERE ctid = ANY(ARRAY(SELECT ctid FROM old))`, p.before, pruneAtOnce)
				n = tag.RowsAffected()
				return err
			})
			if err != nil {
				return fmt.Errorf("delete old rows of analytics.%s: %w", p.table, err)
			}
		}
	}
	return nil
}
