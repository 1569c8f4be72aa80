package daypart

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// create adds the partition of day d. CREATE and ATTACH rather than CREATE …
// PARTITION OF: the latter locks the table against every reader and writer,
// so one long transaction would stop them all.
func create(ctx context.Context, db DB, t Table, d day) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, t); err != nil {
			return err
		}
		lacking, err := missing(ctx, tx, t, d.start, d.start)
		if err != nil || len(lacking) == 0 { // another process was first
			return err
		}
		part := Table{t.Schema, d.name(t)}
		// LIKE copies no identity: a column of the partition that has one of
		// its own cannot be attached.
		if err := exec(ctx, tx, "CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY EXCLUDING STATISTICS)",
			part.ident(), t.ident()); err != nil {
			return err
		}
		if err := adopt(ctx, tx, t, part, d); err != nil {
			return err
		}
		return exec(ctx, tx, "ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')",
			t.ident(), part.ident(), d.floor(), d.next().floor())
	})
}

// lock serialises creators of t's partitions. The advisory lock is waited for
// under the same timeout.
func lock(ctx context.Context, tx pgx.Tx, t Table) error {
	if err := exec(ctx, tx, "SET LOCAL lock_timeout = %d", LockTimeout.Milliseconds()); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "daypart "+t.ident())
	return err
}

// adopt moves rows of day d that reached the default partition, if there is
// one, to the new partition; ATTACH refuses while they stand there. The
// default partition is locked first so that none can follow in between.
func adopt(ctx context.Context, tx pgx.Tx, t, part Table, d day) error {
	fallback, column, ok, err := Default(ctx, tx, t)
	if err != nil || !ok {
		return err
	}
	if err := exec(ctx, tx, "LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", fallback.ident()); err != nil {
		return err
	}
	col := pgx.Identifier{column}.Sanitize()
	return exec(ctx, tx, "WITH moved AS (DELETE FROM %[1]s WHERE %[2]s >= '%[3]s' AND %[2]s < '%[4]s' RETURNING *) INSERT INTO %[5]s SELECT * FROM moved",
		fallback.ident(), col, d.floor(), d.next().floor(), part.ident())
}

// exec runs DDL, which takes no parameters. Every value put in is an
// identifier made safe or text of our own.
func exec(ctx context.Context, tx pgx.Tx, format string, args ...any) error {
	sql := fmt.Sprintf(format, args...)
	if _, err := tx.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%.40s…: %w", sql, err)
	}
	return nil
}
