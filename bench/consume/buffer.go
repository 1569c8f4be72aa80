package consume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// BufferConfig is a producer that is faster than its consumer for a while.
type BufferConfig struct {
	Engines engine.Config
	Produce int           // events a second
	Drain   int           // events a second that the consumer takes meanwhile
	For     time.Duration // how long

	Progress func(step string)
}

// CheckBuffer refuses what cannot be measured, saying why.
func CheckBuffer(cfg BufferConfig) error {
	switch {
	case cfg.Produce < 1 || cfg.Produce > 200_000:
		return fmt.Errorf("--produce %d: want 1 to 200000 events a second", cfg.Produce)
	case cfg.Drain < 1 || cfg.Drain > 200_000:
		return fmt.Errorf("--drain %d: want 1 to 200000 events a second", cfg.Drain)
	case cfg.For < time.Second || cfg.For > time.Hour:
		return fmt.Errorf("--seconds: %s: want 1 s to 1 h", cfg.For)
	}
	return nil
}

// Sample is the state at a moment.
type Sample struct {
	Seconds float64  `json:"s"`      // since the start
	Depth   int64    `json:"depth"`  // events published and not handled
	RSS     *float64 `json:"rss_mb"` // of producer and consumer, which are this process
}

// BufferResult is one run.
type BufferResult struct {
	Name       string   `json:"name"`
	Events     int64    `json:"events"`
	Produced   float64  `json:"produced_per_s"` // while it was asked for
	Drained    float64  `json:"drained_per_s"`  // meanwhile
	MaxDepth   int64    `json:"max_depth"`
	CatchUp    float64  `json:"catch_up_s"`         // from the end of the production, the brake off, to depth 0
	CatchUpAt  float64  `json:"catch_up_events_s"`  // rate of it
	RSSFirst   *float64 `json:"rss_mb"`             // with nothing waiting
	RSSPeak    *float64 `json:"rss_peak_mb"`        // the most while it was deep
	Broker     *float64 `json:"broker_rss_peak_mb"` // of the embedded broker; nil for somebody's own
	Lost       int64    `json:"lost"`
	Reordered  int64    `json:"reordered"`
	Duplicates int64    `json:"duplicates"`
	Samples    []Sample `json:"samples"`
	Cores      int      `json:"cores"`
	Seconds    float64  `json:"took_s"`
}

// buffer is a run under way.
type buffer struct {
	*run
	cfg       BufferConfig
	published atomic.Int64
	handled   atomic.Int64
	brake     *brake
	seen      *ledger
	out       BufferResult
}

// RunBuffer has a producer outrun a consumer, and the consumer catch up.
func RunBuffer(ctx context.Context, cfg BufferConfig) (_ BufferResult, err error) {
	if err := CheckBuffer(cfg); err != nil {
		return BufferResult{}, err
	}
	began := time.Now()
	b := &buffer{
		run: &run{cfg: Config{Engines: cfg.Engines, Progress: cfg.Progress}}, cfg: cfg,
		brake: newBrake(cfg.Drain), seen: newLedger(),
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	for _, s := range []struct {
		name  string
		limit time.Duration
		fn    func(context.Context) error
	}{
		{"start Postgres, broker and registry", 3 * time.Minute, b.start},
		{"make tables and the topic", time.Minute, b.prepare},
		{fmt.Sprintf("publish %d a second for %s, handle %d", cfg.Produce, cfg.For, cfg.Drain), 10*cfg.For + 5*time.Minute, b.pour},
	} {
		if err := b.step(ctx, s.name, s.limit, s.fn); err != nil {
			return BufferResult{}, err
		}
	}
	b.finish(began)
	return b.out, nil
}

// pour publishes and handles, and waits until all is handled.
func (b *buffer) pour(ctx context.Context) error {
	g := consumer.New(consumer.Deps{DB: b.db, Client: b.engines.Broker.Client, Decoder: registry.NewDecoder(b.registry)},
		consumer.Config{Group: "buffer." + b.engines.Name(), Delivery: consumer.AtLeastOnce, Workers: 64, Logger: slog.New(slog.DiscardHandler)})
	consumer.OnEvent(g, func(ctx context.Context, e event.Of[step]) error {
		if err := b.brake.wait(ctx); err != nil {
			return err
		}
		b.seen.saw(e.Data.Account, e.Data.N)
		b.handled.Add(1)
		return nil
	})
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- g.Run(running) }()
	go b.brake.run(ctx)
	sampled := make(chan struct{})
	began := time.Now()
	sampling, stopSampling := context.WithCancel(ctx)
	defer stopSampling()
	go func() { defer close(sampled); b.sample(sampling, began) }()
	err := b.produce(ctx)
	b.out.Produced = float64(b.published.Load()) / time.Since(began).Seconds()
	b.out.Drained = float64(b.handled.Load()) / time.Since(began).Seconds()
	left, from := b.published.Load()-b.handled.Load(), time.Now()
	b.brake.release()
	for err == nil && b.handled.Load() < b.published.Load() {
		select {
		case err = <-ended:
			return errors.Join(err, errors.New("the group ended by itself"))
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	b.out.CatchUp = time.Since(from).Seconds()
	b.out.CatchUpAt = float64(left) / b.out.CatchUp
	stopSampling()
	<-sampled
	stop()
	return errors.Join(err, <-ended)
}

// finish sums up.
func (b *buffer) finish(began time.Time) {
	b.out.Name, b.out.Cores, b.out.Seconds = "buffer", runtime.NumCPU(), time.Since(began).Seconds()
	b.out.Events = b.published.Load()
	b.out.Lost = b.published.Load() - b.seen.distinct
	b.out.Reordered, b.out.Duplicates = b.seen.reordered, b.seen.duplicates
	for i := range b.out.Samples {
		rss := b.out.Samples[i].RSS
		switch {
		case rss == nil:
		case b.out.RSSFirst == nil:
			b.out.RSSFirst, b.out.RSSPeak = rss, rss
		case *rss > *b.out.RSSPeak:
			b.out.RSSPeak = rss
		}
	}
	if u := b.engines.LogUsage(); u.Known {
		b.out.Broker = &u.Peak
	}
}

// produce publishes at its rate.
func (b *buffer) produce(ctx context.Context) error {
	return b.send(ctx, &b.published, func(since time.Duration) (int64, bool) {
		return int64(min(since, b.cfg.For).Seconds() * float64(b.cfg.Produce)), since >= b.cfg.For
	})
}

// sample notes depth and memory until ctx ends.
func (b *buffer) sample(ctx context.Context, began time.Time) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		s := Sample{Seconds: time.Since(began).Seconds(), Depth: b.published.Load() - b.handled.Load()}
		if u := child.UsageOf(os.Getpid()); u.Known {
			s.RSS = &u.RSS
		}
		b.out.Samples = append(b.out.Samples, s)
		b.out.MaxDepth = max(b.out.MaxDepth, s.Depth)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
