package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/projection"
)

// verify holds the log and the figures against what was told.
func (r *run) verify(ctx context.Context) error {
	var logged, delivered, entered, counted int64
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, projection.Operator); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM analytics.events),
			(SELECT count(*) FROM analytics.deliveries WHERE delivered_at IS NOT NULL),
			(SELECT sum(entered) FROM analytics.orders_by_hour WHERE state = 'DELIVERED'),
			(SELECT sum(count) FROM analytics.orders_by_state WHERE state = 'DELIVERED')`).Scan(&logged, &delivered, &entered, &counted)
	})
	if err != nil {
		return err
	}
	var bytes float64
	err = r.db.QueryRow(ctx, `SELECT sum(pg_total_relation_size(inhrelid))::float8 FROM pg_inherits WHERE inhparent = 'analytics.events'::regclass`).Scan(&bytes)
	if err != nil {
		return err
	}
	r.res.BytesEach = bytes / float64(max(1, logged))
	r.res.Lost = r.res.Events - logged
	for _, n := range []int64{delivered, entered, counted} {
		if n < r.res.Orders {
			r.res.Lost += r.res.Orders - n
		}
		r.res.Duplicates += max(0, n-r.res.Orders)
	}
	return nil
}

// copyRows is the rows of one COPY.
const copyRows = 1000

// limit copies the log's rows into a table with its primary key and nothing else.
func (r *run) limit(ctx context.Context) error {
	columns := []string{"id", "tenant", "type", "subject", "sequence", "time", "source", "data"}
	var rows [][]any
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, projection.Operator); err != nil {
			return err
		}
		all, err := tx.Query(ctx, `SELECT id, tenant, type, subject, sequence, time, source, data::text FROM analytics.events`)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(all, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
		return err
	})
	if err != nil {
		return err
	}
	if _, err := r.db.Exec(ctx, `CREATE TABLE analytics.peer (id uuid PRIMARY KEY, tenant text, type text, subject text, sequence bigint, time timestamptz, source text, data json)`); err != nil {
		return err
	}
	if err := r.engines.Checkpoint(ctx); err != nil {
		return err
	}
	began, served := time.Now(), r.sessions(ctx)
	for from := 0; from < len(rows); from += copyRows {
		part := rows[from:min(from+copyRows, len(rows))]
		if _, err := r.db.CopyFrom(ctx, pgx.Identifier{"analytics", "peer"}, columns, pgx.CopyFromRows(part)); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
	}
	r.res.CopyCPU = since(served, r.sessions(ctx))
	r.res.Copy = float64(len(rows)) / time.Since(began).Seconds()
	return nil
}
