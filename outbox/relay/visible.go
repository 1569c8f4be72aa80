package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A commit is in the WAL, and so in the stream, before other transactions see
// it: by an instant, or, where commits wait for synchronous standbys, by as
// long as those take. Whoever looks into the table for what the stream has
// passed must wait for that.

// unseen are transactions whose events the stream has brought and that were
// kept back, and of which it is not known yet whether the table shows them.
type unseen map[int64]struct{}

func (u *unseen) add(xid int64) {
	if xid == 0 {
		return
	}
	if *u == nil {
		*u = unseen{}
	}
	(*u)[xid] = struct{}{}
}

// look strikes out those that can be seen now.
func (u *unseen) look(ctx context.Context, db *pgxpool.Pool) error {
	if len(*u) == 0 {
		return nil
	}
	all := make([]int64, 0, len(*u))
	for xid := range *u {
		all = append(all, xid)
	}
	return u.load(ctx, db, `SELECT x FROM unnest($1::bigint[]) x WHERE NOT pg_visible_in_snapshot(x::text::xid8, pg_current_snapshot())`, all)
}

// wait waits until all can be seen.
func (u *unseen) wait(ctx context.Context, db *pgxpool.Pool) error {
	for {
		if err := u.look(ctx, db); err != nil || len(*u) == 0 {
			return err
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// addRunning adds the transactions under way, if they may have committed
// already and wait for a standby.
func (u *unseen) addRunning(ctx context.Context, db *pgxpool.Pool) error {
	// A snapshot lists none that began after the last one that ended: let one end.
	if _, err := db.Exec(ctx, `SELECT pg_current_xact_id()`); err != nil {
		return fmt.Errorf("take a transaction number: %w", err)
	}
	return u.load(ctx, db, `SELECT x::text::bigint FROM pg_snapshot_xip(pg_current_snapshot()) x WHERE current_setting('synchronous_standby_names') <> ''`)
}

func (u *unseen) load(ctx context.Context, db *pgxpool.Pool, sql string, args ...any) error {
	rows, err := db.Query(ctx, sql, args...)
	if err == nil {
		var left unseen
		var xid int64
		if _, err = pgx.ForEachRow(rows, []any{&xid}, func() error { left.add(xid); return nil }); err == nil {
			*u = left
			return nil
		}
	}
	return fmt.Errorf("look which transactions can be seen: %w", err)
}

// visible waits until the table shows all that the stream has passed.
func (p *pass) visible(ctx context.Context) (bool, error) {
	ok, err := within(ctx, mendWait, func(ctx context.Context) error { return p.unseen.wait(ctx, p.s.db) })
	if err == nil && !ok {
		p.s.log.InfoContext(ctx, "events that were kept back are not visible yet: their commits wait, as for a synchronous standby", "transactions", len(p.unseen))
	}
	return ok, err
}

// commitWait bounds the wait for transactions that may have committed before a
// slot was made and cannot be seen yet.
const commitWait = 10 * time.Second

// waitVisible waits, where commits wait for standbys, for the transactions that
// are under way: one of them may have committed before the slot that was made
// and be in neither that nor in what the table shows.
func (s *session) waitVisible(ctx context.Context) error {
	var running unseen
	if err := running.addRunning(ctx, s.db); err != nil {
		return err
	}
	if len(running) > 0 {
		s.log.InfoContext(ctx, "waiting for transactions under way, which may have committed before the slot was made", "transactions", len(running))
	}
	_, err := within(ctx, commitWait, func(ctx context.Context) error { return running.wait(ctx, s.db) })
	return err
}
