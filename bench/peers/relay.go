package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/relay"
	"github.com/waybillhq/waybill/bench/topic"
	"github.com/waybillhq/waybill/event"
)

type relayConfig struct {
	Program  string // Waybill's own binary
	Events   int64
	Rate     int
	Latency  time.Duration
	Progress func(step string)
}

// relayComparison is one run of all peers, one after the other.
type relayComparison struct {
	Name     string   `json:"name"`
	Events   int64    `json:"events"`
	Rate     int      `json:"rate"`
	Postgres string   `json:"postgres"`
	Cores    int      `json:"cores"`
	Peers    []result `json:"peers"` // Waybill first
}

// result is one peer's. What the system does not tell is nil.
type result struct {
	Name     string `json:"name"`
	Settings string `json:"settings"`
	// From the last moment without any in the topic until all were there and
	// noted as published.
	PerSecond float64 `json:"events_per_s"`
	// Of the process that publishes, over the same time.
	CPU          *float64 `json:"cpu_s"`
	PerCPUSecond *float64 `json:"events_per_cpu_s"`
	Peak         *float64 `json:"rss_peak_mb"`
	// From the return of an event's commit to a consumer that holds it.
	Mean       float64 `json:"mean_ms"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Lost       int64   `json:"lost"`
	Reordered  int64   `json:"reordered"`
	Duplicates int64   `json:"duplicates"`
	// Waybill over this one, 1 for itself.
	TimesFaster *float64 `json:"times_faster"`
	TimesLess   *float64 `json:"times_events_per_cpu_s"`
}

func runRelay(ctx context.Context, cfg relayConfig) (res relayComparison, err error) {
	cfg.Progress("relay: start Postgres, broker and registry")
	e, err := engine.Start(ctx, engine.Config{Program: cfg.Program})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	client, err := e.Broker.Client()
	if err != nil {
		return res, err
	}
	defer client.Close()
	res = relayComparison{Name: "relay", Events: cfg.Events, Rate: cfg.Rate, Postgres: e.Postgres, Cores: runtime.NumCPU()}
	for _, p := range []peer{&waybill{engines: e, program: cfg.Program}, &mill{engines: e}} {
		m := measurement{relayConfig: cfg, engines: e, client: client, peer: p}
		if err := m.run(ctx); err != nil {
			return res, fmt.Errorf("%s: %w", p.name(), err)
		}
		res.Peers = append(res.Peers, m.res)
	}
	res.compare()
	return res, nil
}

func (c *relayComparison) compare() {
	ours := c.Peers[0]
	for i := range c.Peers {
		p := &c.Peers[i]
		p.TimesFaster = over(&ours.PerSecond, &p.PerSecond)
		p.TimesLess = over(ours.PerCPUSecond, p.PerCPUSecond)
	}
}

func over(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	q := *a / *b
	return &q
}

// measurement is of one peer.
type measurement struct {
	relayConfig
	engines *engine.Engines
	client  *kgo.Client
	peer    peer
	res     result
}

func (m *measurement) run(ctx context.Context) error {
	m.res = result{Name: m.peer.name(), Settings: m.peer.settings()}
	for _, s := range []struct {
		name string
		fn   func(context.Context) error
	}{
		{"make tables and topics", m.peer.prepare},
		{"write a backlog", func(ctx context.Context) error {
			return errors.Join(m.peer.fill(ctx, backlogTopic, m.Events), m.engines.Checkpoint(ctx))
		}},
		{"drain it", m.drain},
		{"read it back", m.verify},
		{"take the time of one event", m.latency},
	} {
		if err := m.step(ctx, s.name, s.fn); err != nil {
			return err
		}
	}
	return nil
}

// step is bounded by what a peer may take that publishes 50 events a second.
func (m *measurement) step(ctx context.Context, name string, fn func(context.Context) error) error {
	m.Progress("relay: " + m.peer.name() + ", " + name)
	limit := 2*time.Minute + 2*m.Latency + time.Duration(m.Events)*20*time.Millisecond
	return within(ctx, limit, name, fn)
}

// drain counts from the last moment at which nothing was in the topic: what a
// process does to start is not its rate.
func (m *measurement) drain(ctx context.Context) (err error) {
	p, err := m.peer.start(ctx, backlogTopic)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	var began time.Time
	var cost child.Usage
	err = m.until(ctx, p, func() (bool, error) {
		at, used := time.Now(), p.Usage()
		n, err := topic.Size(ctx, m.client, m.peer.topic(backlogTopic))
		if n == 0 || began.IsZero() {
			began, cost = at, used
		}
		return n >= m.Events, err
	})
	if err != nil {
		return err
	}
	if err := m.until(ctx, p, func() (bool, error) { return m.peer.settled(ctx, m.Events) }); err != nil {
		return err
	}
	took, after := time.Since(began), p.Usage()
	n := float64(m.Events)
	m.res.PerSecond = n / took.Seconds()
	if cost.Known && after.Known {
		cpu := after.CPU - cost.CPU
		m.res.CPU, m.res.Peak, m.res.PerCPUSecond = &cpu, &after.Peak, over(&n, &cpu)
	}
	return nil
}

func (m *measurement) until(ctx context.Context, p *child.Process, done func() (bool, error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return p.Ended()
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ctx.Err(), p.Said())
		}
	}
}

func (m *measurement) verify(ctx context.Context) error {
	t := topic.NewTally(relay.Keys)
	err := topic.Read(ctx, m.engines.Broker, m.peer.topic(backlogTopic), func(rec *kgo.Record) error {
		_, _, err := t.Saw(rec)
		return err
	})
	m.count(t, m.Events-t.Seen)
	return err
}

func (m *measurement) latency(ctx context.Context) (err error) {
	p, err := m.peer.start(ctx, latencyTopic)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	w, err := topic.Latency(event.WithTenant(ctx, "bench"), m.engines.Broker, m.peer.topic(latencyTopic), topic.Load{
		Keys: topic.Keys{Writers: 4, PerWriter: 100}, Rate: m.Rate, Warmup: 2 * time.Second, Length: m.Latency,
		Patience: time.Minute, Write: m.peer.write(latencyTopic),
	})
	if err != nil {
		return err
	}
	m.res.Mean, m.res.P50, m.res.P99 = w.Mean, w.P50, w.P99
	m.count(w.Tally, w.Lost)
	return nil
}

func (m *measurement) count(t *topic.Tally, lost int64) {
	m.res.Lost += lost
	m.res.Reordered += t.Reordered
	m.res.Duplicates += t.Duplicates
}
