// Package daypart keeps the day partitions of tables that are ranged over a
// uuid column holding UUIDv7, so that a day's rows are dropped as one table
// rather than deleted one by one.
//
// It promises that a day's partition is added without stopping writers of the
// table for longer than [LockTimeout], by however many processes at once, that
// rows which reached the default partition first move along, and that a day is
// emptied and dropped without a long transaction of somebody's making writers
// wait. It drops only what is empty, and it does not copy storage parameters or
// privileges: access goes through the table itself.
//
// Create days ahead of their time: a writer that is just putting a row into the
// default partition while the row's day is being added may be refused, once,
// with check_violation (23514).
package daypart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// LockTimeout bounds how long [Ensure] waits for a lock, and with it how long
// writers may queue behind that wait. After it the call fails and may be
// repeated.
const LockTimeout = time.Second

// DB is what Ensure needs of a database: a pool, a connection or a
// transaction.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Table names a partitioned table.
type Table struct {
	Schema string
	Name   string
}

func (t Table) ident() string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

// Ensure creates the partitions of the UTC days from..to, both included, that
// t lacks. When all are there it costs one catalog query.
//
// Each day is its own transaction, and one that cannot be created, say because
// its partition was detached and kept, does not hold up the days after it. The
// error joins what went wrong. A lock that cannot be had ends the call: it is
// the same for every day. Given a transaction, the locks last until that
// transaction ends, and the first error ends it.
func Ensure(ctx context.Context, db DB, t Table, from, to time.Time) error {
	lacking, err := missing(ctx, db, t, from, to)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range lacking {
		err := create(ctx, db, t, d)
		if err == nil {
			continue
		}
		errs = append(errs, fmt.Errorf("partition %s: %w", d.name(t), err))
		if !ownToDay(err) || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// ownToDay tells whether other days may still be created: the server answered,
// and not that it could not have the lock or that the transaction is over.
func ownToDay(err error) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal) && refusal.Code != "55P03" && refusal.Code != "25P02"
}

// missing lists the days of from..to without a partition of their name.
func missing(ctx context.Context, db DB, t Table, from, to time.Time) ([]day, error) {
	rows, err := db.Query(ctx, `SELECT c.relname::text FROM pg_catalog.pg_inherits i
		JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = $1::text::regclass`, t.ident())
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", t.ident(), err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list partitions of %s: %w", t.ident(), err)
	}
	have := make(map[string]bool, len(names))
	for _, n := range names {
		have[n] = true
	}
	var out []day
	for d := dayOf(from); !d.start.After(to); d = d.next() {
		if !have[d.name(t)] {
			out = append(out, d)
		}
	}
	return out, nil
}
