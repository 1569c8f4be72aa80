package main

import (
	"context"
	"time"
)

// kill ends a process with kill -9 when a third of the effects are begun, and
// has another one of the same group go on. What counts is what is in the table
// when the group has noted everything as handled: whatever the first process
// had done and not noted has come again by then.
func (c *consuming) kill(ctx context.Context, p consumePeer, t *tries) error {
	if err := c.clean(ctx, p); err != nil {
		return err
	}
	group := c.group(p, "killed")
	first, err := c.start(ctx, p, group)
	if err != nil {
		return err
	}
	defer func() { _ = first.Stop() }()
	if err := c.until(ctx, first, func() (bool, error) {
		n, err := c.made(ctx)
		return n >= c.Events/3, err
	}); err != nil {
		return err
	}
	if err := first.Kill(); err != nil {
		return err
	}
	if err := c.disconnected(ctx); err != nil {
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
