package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/bench/child"
)

// made is how many effects were begun: a word of the table's sequence, which
// costs the server nothing.
func (c *consuming) made(ctx context.Context) (n int64, err error) {
	err = c.engines.DB.QueryRow(ctx, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM effect_id_seq`).Scan(&n)
	return n, err
}

// complete tells that all effects are there, or that the group believes so.
func (c *consuming) complete(ctx context.Context, group string) (bool, error) {
	n, err := c.made(ctx)
	if err == nil && n >= c.Events {
		err = c.engines.DB.QueryRow(ctx, `SELECT count(*) FROM effect`).Scan(&n)
	}
	if err != nil || n >= c.Events {
		return true, err
	}
	return c.caughtUp(ctx, group)
}

// caughtUp tells that the group has noted all of the topic as handled.
func (c *consuming) caughtUp(ctx context.Context, group string) (bool, error) {
	if time.Since(c.asked) < 100*time.Millisecond {
		return false, nil
	}
	c.asked = time.Now()
	at, err := c.admin.FetchOffsetsForTopics(ctx, group, consumeTopic)
	if err != nil {
		return false, err
	}
	var n int64
	at.Each(func(o kadm.OffsetResponse) { n += max(o.At, 0) })
	return n >= c.Events, nil
}

// verify counts what is in the table against what was published. Rows of a key
// have ids in the order they were written.
func (c *consuming) verify(ctx context.Context, res *consumeResult) error {
	var rows, distinct, reordered int64
	err := c.engines.DB.QueryRow(ctx, `SELECT count(*), count(DISTINCT (account, n)), count(*) FILTER (WHERE n < before)
		FROM (SELECT account, n, lag(n) OVER (PARTITION BY account ORDER BY id) AS before FROM effect) e`).Scan(&rows, &distinct, &reordered)
	res.Lost += c.Events - distinct
	res.Twice += rows - distinct
	res.Reorder += reordered
	return err
}

// until looks every few milliseconds, as long as the process lives.
func (c *consuming) until(ctx context.Context, run *child.Process, done func() (bool, error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-run.Done():
			return run.Ended()
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ctx.Err(), run.Said())
		}
	}
}

// disconnected waits until the server has noticed that a dead process is gone,
// so that nothing of it is committed any more.
func (c *consuming) disconnected(ctx context.Context) error {
	for {
		var n int
		err := c.engines.DB.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, partName).Scan(&n)
		if err != nil || n == 0 {
			return err
		}
		if _, err := c.engines.DB.Exec(ctx, `SELECT pg_sleep(0.01)`, pgx.QueryExecModeExec); err != nil {
			return err
		}
	}
}
