package daypart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Drop takes the partition p off t, if it is empty.
//
// That locks t against every reader and writer. DETACH … CONCURRENTLY would
// not, but the server refuses it to a table that has a default partition. So
// Drop first looks whether a transaction holds t for longer than a moment, and
// then leaves it alone; otherwise it waits for the lock no longer than
// [Patience], which is the most that writers may stand still.
//
// It fails with ErrBusy or ErrNotEmpty. A partition that is gone already is
// dropped. The caller should see to it that no row is on its way: a row of that
// day goes to the default partition afterwards.
func Drop(ctx context.Context, db DB, t Table, p Part) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return drop(ctx, tx, t, p) })
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42P01" { // another process was first
		return nil
	}
	if err != nil {
		return fmt.Errorf("drop partition %s: %w", p.Name, err)
	}
	return nil
}

func drop(ctx context.Context, tx pgx.Tx, t Table, p Part) error {
	if err := refuseHeld(ctx, tx, t); err != nil {
		return err
	}
	if err := lockAll(ctx, tx, []Table{t, p.Table}, "ACCESS EXCLUSIVE", 1); err != nil {
		return err
	}
	// Of the default partition, which DROP locks as well.
	if err := exec(ctx, tx, "SET LOCAL lock_timeout = %d", Patience.Milliseconds()); err != nil {
		return err
	}
	var rows bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM ONLY "+p.ident()+")").Scan(&rows); err != nil {
		return err
	}
	if rows {
		return ErrNotEmpty
	}
	return busy(exec(ctx, tx, "DROP TABLE %s", p.ident()))
}

// watch is how long a transaction must be seen to hold a table for it to be
// left alone.
const watch = 200 * time.Millisecond

// refuseHeld is ErrBusy if one transaction holds t, or its default partition,
// before and after a while. What it asks shows every role's locks, unlike the
// ages of their transactions.
func refuseHeld(ctx context.Context, tx pgx.Tx, t Table) error {
	before, err := holders(ctx, tx, t)
	if err != nil || len(before) == 0 {
		return err
	}
	if err := rest(ctx, watch); err != nil {
		return err
	}
	after, err := holders(ctx, tx, t)
	if err != nil {
		return err
	}
	for _, holder := range after {
		if slices.Contains(before, holder) {
			return fmt.Errorf("%w for longer than %s", ErrBusy, watch)
		}
	}
	return nil
}

// holders are the transactions, others than tx, with a lock on t or its default
// partition.
func holders(ctx context.Context, tx pgx.Tx, t Table) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT virtualtransaction FROM pg_catalog.pg_locks
		WHERE locktype = 'relation' AND granted AND pid IS DISTINCT FROM pg_backend_pid()
		AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
		AND relation IN (SELECT $1::text::regclass UNION ALL
			SELECT partdefid FROM pg_catalog.pg_partitioned_table WHERE partrelid = $1::text::regclass)`, t.ident())
	if err != nil {
		return nil, fmt.Errorf("look who uses %s: %w", t.ident(), err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look who uses %s: %w", t.ident(), err)
	}
	return out, nil
}
