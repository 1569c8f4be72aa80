package consume

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/alert"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/lag"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/registry"
)

// load is a run under way.
type load struct {
	*run
	cfg       LoadConfig
	began     time.Time // of the load
	published atomic.Int64
	handled   atomic.Int64
	group     *consumer.Group
	monitor   *lag.Monitor
	workers   atomic.Int64
	notes     notes
	out       LoadResult
}

// Pace of the run: a minute stands for what takes an hour elsewhere.
const (
	loadSpare  = 6                      // connections beside those of the workers
	lookEvery  = 500 * time.Millisecond // at the lag, and by the alerts
	warmEvents = 60                     // before the load, so that the group has joined
)

func (l *load) prepareLoad(ctx context.Context) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	return pg.Migrate(ctx, l.db, alert.Migration())
}

// name is the group's. In a broker of somebody's it is one that nobody has.
func (l *load) name() string {
	if len(l.cfg.Engines.Broker.Brokers) == 0 {
		return "load"
	}
	return "load." + l.engines.Name()
}

// pour runs the group, what watches it and the load, until all is handled and
// no alert is left.
func (l *load) pour(ctx context.Context) (err error) {
	l.makeGroup()
	running, stop := context.WithCancel(ctx)
	parts := newParts(running)
	defer func() {
		stop()
		err = errors.Join(err, parts.wait())
	}()
	parts.run(l.group.Run)
	if err := l.warm(ctx, parts); err != nil {
		return err
	}
	if l.cfg.Ready != nil {
		l.cfg.Ready(l.engines.Broker.Brokers, l.name())
	}
	l.began = time.Now()
	l.notes.began = l.began
	parts.run(l.alerts().Run)
	if err := l.scaleBy(parts); err != nil {
		return err
	}
	sampling, stopSampling := context.WithCancel(ctx)
	defer stopSampling()
	sampled := make(chan struct{})
	go func() { defer close(sampled); l.sample(sampling) }()
	if err = l.produce(ctx); err == nil {
		err = parts.until(ctx, l.quiet)
	}
	stopSampling()
	<-sampled
	return err
}

// makeGroup makes the consumer: it calls somebody, which takes a while, and
// keeps what came of it in a short transaction.
func (l *load) makeGroup() {
	l.group = consumer.New(consumer.Deps{DB: l.db, Client: l.engines.Broker.Client, Decoder: registry.NewDecoder(l.registry)},
		consumer.Config{Group: l.name(), Workers: l.cfg.Workers, FlushEvery: lookEvery / 2, Logger: slog.New(slog.DiscardHandler)})
	l.workers.Store(int64(l.cfg.Workers))
	consumer.OnPrepared(l.group, func(ctx context.Context, _ event.Of[step]) (struct{}, error) {
		select {
		case <-time.After(l.cfg.Handler):
			return struct{}{}, nil
		case <-ctx.Done():
			return struct{}{}, ctx.Err()
		}
	}, func(ctx context.Context, tx pgx.Tx, e event.Of[step], _ struct{}) error {
		_, err := tx.Exec(ctx, insertEffect, e.Data.Account, e.Data.N)
		if err == nil {
			l.handled.Add(1) // once more where the commit fails; the table is what counts
		}
		return err
	})
}

// warm lets the group join and handle a few events of the load to come. Only
// then is it watched: what it did at once when it had joined would be in the
// monitor's averages.
func (l *load) warm(ctx context.Context, p *parts) error {
	if err := l.send(ctx, &l.published, func(time.Duration) (int64, bool) { return warmEvents, true }); err != nil {
		return err
	}
	var err error
	if waited := p.until(ctx, func() (saved bool) { saved, err = l.savedWarm(ctx); return saved || err != nil }); waited != nil || err != nil {
		return errors.Join(waited, err)
	}
	if l.monitor, err = lag.New(lag.Deps{Client: l.engines.Broker.Client, DB: l.db}, lag.Config{
		Groups: []string{l.name()}, Every: lookEvery, Logger: slog.New(slog.DiscardHandler),
	}); err != nil {
		return err
	}
	p.run(l.monitor.Run)
	return p.until(ctx, l.caughtUp)
}

// count reads the effects back.
func (l *load) count(ctx context.Context) error {
	l.run.cfg.Events = l.published.Load()
	l.out.Events = l.published.Load()
	return l.verify(ctx)
}

// produce publishes fast, then slowly.
func (l *load) produce(ctx context.Context) error {
	c := l.cfg
	return l.send(ctx, &l.published, func(since time.Duration) (int64, bool) {
		due := min(since, c.Burst).Seconds()*float64(c.Produce) + max(0, since-c.Burst).Seconds()*float64(c.Calm)
		return warmEvents + int64(due), since >= c.Burst+c.After
	})
}
