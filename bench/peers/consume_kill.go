package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// holdEffects has effects wait for a lock that we hold, from the one with the
// id on: the process is killed with its transactions open, however slowly we
// notice that it has come so far.
const holdEffects = `
CREATE OR REPLACE FUNCTION hold_effect() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.id >= TG_ARGV[0]::bigint THEN
		PERFORM pg_advisory_xact_lock_shared(1);
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER hold BEFORE INSERT ON effect FOR EACH ROW EXECUTE FUNCTION hold_effect(%d);
SELECT pg_advisory_lock(1)`

// kill ends a process with kill -9 when a third of the effects are begun, and
// has another one of the same group go on. What counts is what is in the table
// when the group has noted everything as handled: whatever the first process
// had done and not noted has come again by then.
func (c *consuming) kill(ctx context.Context, p consumePeer, t *tries) error {
	if err := c.clean(ctx, p); err != nil {
		return err
	}
	group := c.group(p, "killed")
	if err := c.untilKilled(ctx, p, group); err != nil {
		return err
	}
	if err := c.engines.DB.QueryRow(ctx, `SELECT count(*) FROM effect`).Scan(&t.res.Killed.At); err != nil {
		return err
	}
	begun, err := c.made(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	second, err := c.start(ctx, p, group)
	if err != nil {
		return err
	}
	defer func() { _ = second.Stop() }()
	if err := c.until(ctx, second, func() (bool, error) {
		n, err := c.made(ctx)
		return n > begun, err
	}); err != nil {
		return err
	}
	t.res.Killed.Pause = time.Since(started).Seconds()
	if err := c.until(ctx, second, func() (bool, error) { return c.caughtUp(ctx, group) }); err != nil {
		return err
	}
	if err := second.Stop(); err != nil {
		return err
	}
	return c.verify(ctx, &t.res)
}

// untilKilled runs a process up to a third of the effects, and returns when
// nothing of it is left in the server either.
func (c *consuming) untilKilled(ctx context.Context, p consumePeer, group string) error {
	lock, err := pgx.Connect(ctx, c.engines.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close(context.WithoutCancel(ctx)) }()
	third := max(c.Events/3, 1)
	if _, err := lock.Exec(ctx, fmt.Sprintf(holdEffects, third)); err != nil {
		return err
	}
	first, err := c.start(ctx, p, group)
	if err != nil {
		return err
	}
	defer func() { _ = first.Kill() }()
	if err := c.until(ctx, first, func() (bool, error) {
		n, err := c.made(ctx)
		return n >= third, err
	}); err != nil {
		return err
	}
	if err := first.Kill(); err != nil {
		return err
	}
	// They go on, and find that nobody is there to commit.
	if _, err := lock.Exec(ctx, `SELECT pg_advisory_unlock(1)`); err != nil {
		return err
	}
	if err := c.disconnected(ctx); err != nil {
		return err
	}
	_, err = lock.Exec(ctx, `DROP TRIGGER hold ON effect`)
	return err
}
