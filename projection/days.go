package projection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

var eventsTable = daypart.Table{Schema: "analytics", Name: "events"}

// daysAhead is enough for an operator's long weekend.
const daysAhead = 3

// Run keeps the log's days until ctx ends: those to come are made, those that
// are older than the log keeps are dropped, each hour. What cannot be done just
// now is told and done an hour later: meanwhile events go to the default
// partition.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for now := time.Now(); ; {
		if err := errors.Join(l.EnsureDays(ctx, now), l.prune(ctx, now)); err != nil && ctx.Err() == nil {
			l.cfg.Logger.WarnContext(ctx, "days of the log of events", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case now = <-tick.C:
		}
	}
}

// EnsureDays makes the partitions of the days around now.
func (l *Log) EnsureDays(ctx context.Context, now time.Time) error {
	if err := daypart.Ensure(ctx, operating{l.db}, eventsTable, now.AddDate(0, 0, -1), now.AddDate(0, 0, daysAhead)); err != nil {
		return fmt.Errorf("partitions of the log of events: %w", err)
	}
	return l.wall(ctx)
}

// wall gives partitions the policy that a table made like another lacks.
func (l *Log) wall(ctx context.Context) error {
	rows, err := l.db.Query(ctx, `SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'analytics.events'::regclass AND NOT c.relforcerowsecurity`)
	if err != nil {
		return fmt.Errorf("partitions of the log of events without a policy: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("partitions of the log of events without a policy: %w", err)
	}
	for _, name := range names {
		part := pgx.Identifier{"analytics", name}.Sanitize()
		_, err := l.db.Exec(ctx, fmt.Sprintf(`DROP POLICY IF EXISTS by_tenant_or_operator ON %[1]s;
			CREATE POLICY by_tenant_or_operator ON %[1]s
				USING (CASE WHEN current_setting('waybill.operator', true) = 'on' THEN true
					ELSE tenant = current_setting('waybill.tenant', true) END);
			ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY;
			ALTER TABLE %[1]s FORCE ROW LEVEL SECURITY`, part), pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return fmt.Errorf("policy of %s: %w", name, err)
		}
	}
	return nil
}

// pruneAtOnce bounds one statement on the default partition.
const pruneAtOnce = 10_000

// prune drops the days that are older than the log keeps, and what is as old in
// the default partition.
func (l *Log) prune(ctx context.Context, now time.Time) error {
	first := daypart.Day(l.oldest(now))
	parts, err := daypart.Parts(ctx, l.db, eventsTable)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range parts {
		if p.Day.Before(first) {
			errs = append(errs, l.dropDay(ctx, p))
		}
	}
	for {
		n, err := l.pruneDefault(ctx, first)
		if n < pruneAtOnce || err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
}

// dropDay drops a day unless somebody uses it: then the next round does.
func (l *Log) dropDay(ctx context.Context, p daypart.Part) error {
	db := operating{l.db}
	err := daypart.Empty(ctx, db, []daypart.Table{p.Table}, func(context.Context, pgx.Tx) error { return nil })
	if err == nil {
		err = daypart.Drop(ctx, db, eventsTable, p)
	}
	if errors.Is(err, daypart.ErrBusy) || errors.Is(err, daypart.ErrNotEmpty) || pg.Conflict(err) {
		return nil
	}
	return err
}

func (l *Log) pruneDefault(ctx context.Context, first time.Time) (n int64, err error) {
	err = pgx.BeginFunc(ctx, operating{l.db}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM analytics.events_default WHERE id = ANY(ARRAY(
			SELECT id FROM analytics.events_default WHERE id < $1 LIMIT $2))`, event.IDFloor(first), pruneAtOnce)
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("prune the log's default partition: %w", err)
	}
	return n, nil
}

// operating is a pool whose transactions act for all tenants: the policies bind
// the owner of the tables too, and rows of all of them move to their day.
type operating struct{ *pgxpool.Pool }

func (o operating) Begin(ctx context.Context) (pgx.Tx, error) {
	return o.BeginTx(ctx, pgx.TxOptions{BeginQuery: "begin; set local waybill.operator = 'on'"})
}
