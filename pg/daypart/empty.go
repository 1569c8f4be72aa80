package daypart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Patience bounds each wait for a lock that [Empty] and [Drop] take, and so how
// long anyone can queue behind such a wait.
const Patience = 50 * time.Millisecond

// What keeps a partition from being emptied or dropped for now; try again
// later.
var (
	ErrBusy     = errors.New("another transaction is using it")
	ErrNotEmpty = errors.New("it has rows")
)

// Empty empties parts, all of them or none, after check has looked at them.
//
// While check runs, in the same transaction, nobody writes to parts, and
// readers go on. Rows it saw are then all the rows there are; what it writes is
// committed together with the emptying. An error of check leaves everything as
// it was.
//
// The parent is not locked: writers of other days never wait. Those of the same
// days wait while check runs. The disk space is free at the commit, whatever
// old snapshots there are; a transaction with such a snapshot that looks into
// parts afterwards, for the first time, finds them empty.
//
// ErrBusy means that somebody has written to parts, or read them, in a
// transaction that is still open.
func Empty(ctx context.Context, db DB, parts []Table, check func(ctx context.Context, tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// Readers are turned away for the last moment only: check may take
		// seconds, and whoever reads the whole table meets every partition.
		if err := lockAll(ctx, tx, parts, "SHARE", 3); err != nil {
			return err
		}
		if err := check(ctx, tx); err != nil {
			return err
		}
		if err := lockAll(ctx, tx, parts, "ACCESS EXCLUSIVE", 3); err != nil {
			return err
		}
		for _, p := range parts {
			if err := exec(ctx, tx, "TRUNCATE ONLY %s", p.ident()); err != nil {
				return err
			}
		}
		return nil
	})
}

// lockAll locks tables in mode, waiting Patience for each, at most tries times
// and each time for none or all of them.
func lockAll(ctx context.Context, tx pgx.Tx, tables []Table, mode string, tries int) error {
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
			if err := exec(ctx, tx, "SET LOCAL lock_timeout = %d", Patience.Milliseconds()); err != nil {
				return err
			}
			for _, t := range tables {
				if err := exec(ctx, tx, "LOCK TABLE ONLY %s IN %s MODE", t.ident(), mode); err != nil {
					return busy(err)
				}
			}
			return nil
		})
		if !errors.Is(err, ErrBusy) || try >= tries {
			return err
		}
		if err := rest(ctx, 2*Patience); err != nil { // lets those through who queued behind us
			return err
		}
	}
}

// busy turns the server's words for it into ErrBusy.
func busy(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "55P03" {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
