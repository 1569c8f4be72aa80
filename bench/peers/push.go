package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/push"
)

type pushConfig struct {
	Program     string // Waybill's own binary
	Connections int
	Rate        int
	For         time.Duration
	Broadcasts  int
	Rounds      int
	Progress    func(step string)
}

// pushBody is the padding of an event, in bytes.
const pushBody = 200

// pushPeer is a server of streams.
type pushPeer struct {
	name, settings string
	start          func(ctx context.Context, cfg pushConfig, e *engine.Engines) (pushServer, error)
}

type pushServer interface {
	push.Server
	Stop() error
}

// pushComparison is of servers that the same readers follow, one after the other.
type pushComparison struct {
	Name        string       `json:"name"`
	Connections int          `json:"connections"`
	Rate        int          `json:"rate_per_s"`
	Broadcasts  int          `json:"broadcasts"`
	Rounds      int          `json:"rounds"`
	Cores       int          `json:"cores"`
	Peers       []pushResult `json:"peers"` // Waybill first
}

// pushResult is the medians of one server's rounds; what was lost or came twice
// is of all of them.
type pushResult struct {
	Name       string  `json:"name"`
	Settings   string  `json:"settings"`
	Bytes      float64 `json:"bytes_per_connection"` // heap and stacks, idle, after a collection
	RSS        float64 `json:"rss_bytes_per_connection"`
	Goroutines float64 `json:"goroutines_per_connection"`
	ConnectS   float64 `json:"connect_s"`
	P50        float64 `json:"p50_ms"` // sent → read, of the events for one
	P99        float64 `json:"p99_ms"`
	Achieved   float64 `json:"achieved_per_s"`
	Broadcast  float64 `json:"broadcast_ms"` // sent → read by the last
	CPU        float64 `json:"server_cpu_s"`
	Lost       int64   `json:"lost"`
	Twice      int64   `json:"duplicates"`
	// This one over Waybill, 1 for itself.
	TimesBytes     *float64 `json:"times_bytes"`
	TimesP99       *float64 `json:"times_p99"`
	TimesBroadcast *float64 `json:"times_broadcast"`

	rounds []push.Result
}

func runPush(ctx context.Context, cfg pushConfig) (res pushComparison, err error) {
	cfg.Progress("push: start a broker")
	e, err := engine.Start(ctx, engine.Config{Program: cfg.Program, NoDatabase: true})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	peers := []pushPeer{waybillPush(), mercurePeer(), centrifugePeer()}
	res = pushComparison{
		Name: "push", Connections: cfg.Connections, Rate: cfg.Rate, Broadcasts: cfg.Broadcasts, Rounds: cfg.Rounds, Cores: runtime.NumCPU(),
	}
	for _, p := range peers {
		res.Peers = append(res.Peers, pushResult{Name: p.name, Settings: p.settings})
	}
	err = alternate(cfg.Rounds, len(peers), func(round, i int) error {
		cfg.Progress(fmt.Sprintf("push: %s, round %d of %d", peers[i].name, round+1, cfg.Rounds))
		limit := 5*time.Minute + 2*cfg.For
		return within(ctx, limit, peers[i].name, func(ctx context.Context) error {
			got, err := pushRound(ctx, cfg, peers[i], e)
			res.Peers[i].rounds = append(res.Peers[i].rounds, got)
			return err
		})
	})
	res.compare()
	return res, err
}

func pushRound(ctx context.Context, cfg pushConfig, p pushPeer, e *engine.Engines) (got push.Result, err error) {
	s, err := p.start(ctx, cfg, e)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	return push.Measure(ctx, push.Config{
		Connections: cfg.Connections, Rate: cfg.Rate, For: cfg.For, Broadcasts: cfg.Broadcasts, Body: pushBody,
		Progress: func(step string) { cfg.Progress("push: " + p.name + ", " + step) },
	}, s)
}

func (c *pushComparison) compare() {
	for i := range c.Peers {
		c.Peers[i].settle()
	}
	ours := c.Peers[0]
	for i := range c.Peers {
		p := &c.Peers[i]
		p.TimesBytes = over(&p.Bytes, &ours.Bytes)
		p.TimesP99 = over(&p.P99, &ours.P99)
		p.TimesBroadcast = over(&p.Broadcast, &ours.Broadcast)
	}
}

func (r *pushResult) settle() {
	of := func(figure func(push.Result) float64) float64 {
		all := make([]float64, len(r.rounds))
		for i, got := range r.rounds {
			all[i] = figure(got)
		}
		return median(all)
	}
	r.Bytes = of(func(g push.Result) float64 { return g.Bytes })
	r.RSS = of(func(g push.Result) float64 { return g.RSS })
	r.Goroutines = of(func(g push.Result) float64 { return g.Goroutines })
	r.ConnectS = of(func(g push.Result) float64 { return g.ConnectS })
	r.P50 = of(func(g push.Result) float64 { return g.P50 })
	r.P99 = of(func(g push.Result) float64 { return g.P99 })
	r.Achieved = of(func(g push.Result) float64 { return g.Achieved })
	r.Broadcast = of(func(g push.Result) float64 { return g.Broadcast })
	r.CPU = of(func(g push.Result) float64 { return g.CPU })
	for _, g := range r.rounds {
		r.Lost += g.Lost
		r.Twice += g.Duplicates
	}
}

// waybillPush is ours: an event goes through the log, and is on disk before it
// is told.
func waybillPush() pushPeer {
	return pushPeer{
		name:     "waybill",
		settings: "produced to the embedded broker, which syncs it to disk, and told by a hub that reads the log; resumes from the log",
		start: func(ctx context.Context, cfg pushConfig, e *engine.Engines) (pushServer, error) {
			return push.StartWaybill(ctx, cfg.Connections, cfg.Program, e)
		},
	}
}
