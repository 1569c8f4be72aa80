package main

import (
	"context"
	"fmt"
	"os"
	"time"

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
