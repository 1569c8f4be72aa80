package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
)

// consuming is a comparison under way.
type consuming struct {
	consumeConfig
	engines *engine.Engines
	admin   *kadm.Client
	peers   []consumePeer
	asked   time.Time // when the broker was, last
}

// tries are one peer's rounds.
type tries struct {
	res         consumeResult
	cpu, server []*float64
	peak        []*float64
}

func (t *tries) result() consumeResult {
	r := t.res
	r.PerSecond, r.CPU, r.Server, r.Peak = median(r.Rates), medianKnown(t.cpu), medianKnown(t.server), medianKnown(t.peak)
	return r
}

// round is one group from its first effect to its last.
func (c *consuming) round(ctx context.Context, p consumePeer, n int, t *tries) error {
	if err := c.clean(ctx, p); err != nil {
		return err
	}
	group := c.group(p, fmt.Sprint("round-", n))
	run, err := c.start(ctx, p, group)
	if err != nil {
		return err
	}
	defer func() { _ = run.Stop() }()
	var from reading
	if err := c.until(ctx, run, func() (bool, error) {
		r, err := c.read(ctx, run)
		if made, merr := c.made(ctx); made > 0 || err != nil || merr != nil {
			return true, firstOf(err, merr)
		}
		from = r
		return false, nil
	}); err != nil {
		return err
	}
	if err := c.until(ctx, run, func() (bool, error) { return c.complete(ctx, group) }); err != nil {
		return err
	}
	to, err := c.read(ctx, run)
	if err != nil {
		return err
	}
	if err := run.Stop(); err != nil {
		return err
	}
	t.res.Rates = append(t.res.Rates, float64(c.Events)/to.at.Sub(from.at).Seconds())
	t.cpu = append(t.cpu, perMillion(from.own, to.own, c.Events))
	t.server = append(t.server, perMillion(from.server, to.server, c.Events))
	t.peak = append(t.peak, to.peak)
	return c.verify(ctx, &t.res)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// reading is what was spent up to a moment.
type reading struct {
	at                time.Time
	own, server, peak *float64
}

func (c *consuming) read(ctx context.Context, run *child.Process) (r reading, err error) {
	r.at = time.Now()
	if u := run.Usage(); u.Known {
		r.own, r.peak = &u.CPU, &u.Peak
	}
	r.server, err = serverCPU(ctx, c.engines.DB)
	return r, err
}

func (c *consuming) group(p consumePeer, run string) string {
	return c.engines.Name() + "." + p.name + "." + run
}

// start has this program play the peer.
func (c *consuming) start(ctx context.Context, p consumePeer, group string) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return child.Start(ctx, p.part, self, []string{playCommand, p.part, group}, c.engines.Env())
}

func (c *consuming) clean(ctx context.Context, p consumePeer) error {
	if _, err := c.engines.DB.Exec(ctx, `TRUNCATE effect RESTART IDENTITY; TRUNCATE waybill.inbox;`+p.clear); err != nil {
		return err
	}
	return c.engines.Checkpoint(ctx)
}

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
