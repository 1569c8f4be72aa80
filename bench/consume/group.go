package consume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// count tells when so many events were handled. The time is taken from the
// first one on: joining the group is not the point.
type count struct {
	goal  int64
	n     atomic.Int64
	once  sync.Once
	first time.Time
	last  time.Time
	done  chan struct{}
}

func newCount(goal int64) *count { return &count{goal: goal, done: make(chan struct{})} }

// add notes that n more were handled. They may not be committed yet; the last
// are, some milliseconds later, which a run of seconds does not notice.
func (c *count) add(n int64) {
	c.once.Do(func() { c.first = time.Now() })
	if total := c.n.Add(n); total >= c.goal && total-n < c.goal {
		c.last = time.Now()
		close(c.done)
	}
}

// group runs a group until its count is full.
func (r *run) group(ctx context.Context, cfg consumer.Config, goal int64, on func(*consumer.Group, *count)) (perSecond float64, err error) {
	cfg.Group += "." + r.engines.Name()
	cfg.Logger = slog.New(slog.DiscardHandler)
	g := consumer.New(consumer.Deps{DB: r.db, Client: r.engines.Broker.Client, Decoder: registry.NewDecoder(r.registry)}, cfg)
	c := newCount(goal)
	on(g, c)
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- g.Run(running) }()
	select {
	case <-c.done:
	case err := <-ended:
		return 0, errors.Join(err, fmt.Errorf("the group ended with %d of %d events handled", c.n.Load(), goal))
	}
	stop()
	if err := <-ended; err != nil {
		return 0, err
	}
	return float64(goal) / c.last.Sub(c.first).Seconds(), nil
}

// inserts is a group whose handlers do one INSERT each.
func (r *run) inserts(ctx context.Context, cfg consumer.Config) (perSecond float64, err error) {
	if err := r.clear(ctx); err != nil {
		return 0, err
	}
	cfg.Workers = connections
	return r.group(ctx, cfg, r.cfg.Events, func(g *consumer.Group, c *count) {
		consumer.On(g, func(ctx context.Context, tx pgx.Tx, e event.Of[step]) error {
			_, err := tx.Exec(ctx, insertEffect, e.Data.Account, e.Data.N)
			if err == nil {
				c.add(1)
			}
			return err
		})
	})
}

// plain has handlers of one INSERT, which share transactions as they come.
func (r *run) plain(ctx context.Context) error {
	before := child.UsageOf(os.Getpid())
	perSecond, err := r.inserts(ctx, consumer.Config{Group: "plain"})
	if err != nil {
		return err
	}
	if after := child.UsageOf(os.Getpid()); after.Known && before.Known {
		cpu := after.CPU - before.CPU
		r.res.CPU = &cpu
	}
	r.res.Plain, r.res.PlainVsTx = perSecond, perSecond/r.res.Tx
	return r.verify(ctx)
}

// counted is plain with each event's number held against its key's.
func (r *run) counted(ctx context.Context) error {
	perSecond, err := r.inserts(ctx, consumer.Config{Group: "counted", Gaps: consumer.HoldGaps})
	if err != nil {
		return err
	}
	r.res.Counted, r.res.CountedVsPlain = perSecond, perSecond/r.res.Plain
	return r.verify(ctx)
}

// batch has handlers of sets.
func (r *run) batch(ctx context.Context) error {
	if err := r.clear(ctx); err != nil {
		return err
	}
	perSecond, err := r.group(ctx, consumer.Config{Group: "batch", Workers: connections, MaxInFlight: 20_000}, r.cfg.Events, func(g *consumer.Group, c *count) {
		consumer.OnBatch(g, func(ctx context.Context, tx pgx.Tx, es []event.Of[step]) error {
			accounts, ns := make([]string, len(es)), make([]int64, len(es))
			for i := range es {
				accounts[i], ns[i] = es[i].Data.Account, es[i].Data.N
			}
			_, err := tx.Exec(ctx, `INSERT INTO effect (account, n) SELECT * FROM unnest($1::text[], $2::bigint[])`, accounts, ns)
			if err == nil {
				c.add(int64(len(es)))
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	r.res.Batch = perSecond
	r.res.BatchVsTx, r.res.BatchVsCopy = perSecond/r.res.Tx, perSecond/r.res.Copy
	return r.verify(ctx)
}

// keyed has handlers that wait for somebody, twice: with and without a key that
// fails always.
func (r *run) keyed(ctx context.Context) error {
	sound := r.cfg.Events - (r.cfg.Events+keys-1)/keys // without those of the key that fails
	measure := func(name string, poison bool) (float64, error) {
		return r.group(ctx, consumer.Config{
			Group: name, Delivery: consumer.AtLeastOnce, Workers: slowWorkers, MaxInFlight: 8 * slowWorkers,
		}, sound, func(g *consumer.Group, c *count) {
			consumer.OnEvent(g, func(_ context.Context, e event.Of[step]) error {
				time.Sleep(slow)
				switch {
				case e.Data.Account != poisoned:
					c.add(1)
				case poison:
					return errors.New("this key fails")
				}
				return nil
			})
		})
	}
	without, err := measure("keyed", false)
	if err != nil {
		return err
	}
	with, err := measure("poisoned", true)
	r.res.Keyed, r.res.Poisoned = without, 1-with/without
	return err
}
