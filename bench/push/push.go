// Package push measures live streams: what an open one costs, how long an event
// takes from the broker's client to a reader, and how long one event takes to
// reach everybody.
//
// The server is package push behind net/http, in a process of its own; so is the
// broker. The readers share the machine with both.
package push

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/stat"
)

// Config of a measurement.
type Config struct {
	Connections int
	Rate        int           // events a second, each for one connection
	For         time.Duration // of them
	Broadcasts  int           // events for everybody, one after the other
	Body        int           // bytes of an event's padding
	Engines     engine.Config
	Progress    func(step string)
}

// Result of a measurement.
type Result struct {
	Name        string  `json:"name"`
	Connections int     `json:"connections"`
	Rate        int     `json:"rate_per_s"`
	Bytes       float64 `json:"bytes_per_connection"`     // heap and stacks of the server, idle, after a collection
	RSS         float64 `json:"rss_bytes_per_connection"` // what the process grew by
	Goroutines  float64 `json:"goroutines_per_connection"`
	ConnectS    float64 `json:"connect_s"` // until all were open
	P50         float64 `json:"p50_ms"`    // produced → read, of the events for one
	P99         float64 `json:"p99_ms"`
	Achieved    float64 `json:"achieved_per_s"`
	Broadcast   float64 `json:"broadcast_ms"` // produced → read by the last, median
	PerSecond   float64 `json:"broadcast_deliveries_per_s"`
	CPU         float64 `json:"server_cpu_s"`
	Lost        int64   `json:"lost"`
	Duplicates  int64   `json:"duplicates"`
	Cores       int     `json:"cores"`
}

// Run measures.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	cfg.Progress("start a broker")
	cfg.Engines.NoDatabase = true
	e, err := engine.Start(ctx, cfg.Engines)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	cfg.Progress("start the server")
	s, err := StartWaybill(ctx, cfg.Connections, cfg.Engines.Program, e)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	return Measure(ctx, cfg, s)
}

// Measure has the crowd follow a server. Of cfg, Engines is not used.
func Measure(ctx context.Context, cfg Config, s Server) (Result, error) {
	r := &run{cfg: cfg, server: s, res: &Result{
		Name: "push", Connections: cfg.Connections, Rate: cfg.Rate, Cores: runtime.NumCPU(),
	}}
	if err := r.measure(ctx); err != nil {
		return Result{}, err
	}
	return *r.res, nil
}

type run struct {
	cfg    Config
	server Server
	crowd  *crowd
	res    *Result
}

func (r *run) measure(ctx context.Context) error {
	before, err := r.server.Usage(ctx)
	if err != nil {
		return err
	}
	r.cfg.Progress(fmt.Sprintf("open %d connections", r.cfg.Connections))
	began := time.Now()
	r.crowd, err = gather(ctx, r.server, r.cfg.Connections)
	if err != nil {
		return err
	}
	defer r.crowd.close()
	r.res.ConnectS = time.Since(began).Seconds()
	after, err := r.server.Usage(ctx)
	if err != nil {
		return err
	}
	n := float64(r.cfg.Connections)
	r.res.Bytes = (after.Memory - before.Memory) / n
	r.res.RSS = (after.RSS - before.RSS) / n
	r.res.Goroutines = (after.Goroutines - before.Goroutines) / n
	for _, step := range []func(context.Context) error{r.targeted, r.everybody} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.res.CPU = r.server.CPU()
	return nil
}

// targeted sends events at a steady rate, each to one connection.
func (r *run) targeted(ctx context.Context) error {
	events := int(float64(r.cfg.Rate) * r.cfg.For.Seconds())
	if events == 0 {
		return nil
	}
	r.cfg.Progress(fmt.Sprintf("%d events a second, each to one connection", r.cfg.Rate))
	round := r.crowd.expect(events)
	began := time.Now()
	for i := range events {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(r.cfg.Rate))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		// A large prime step: neighbours in time are not neighbours on a spoke.
		channel := channelOf(i * 7919 % r.cfg.Connections)
		round.sent[i].Store(int64(time.Since(round.base)))
		r.server.Send(ctx, channel, i, r.cfg.Body, r.crowd.sent)
	}
	took := time.Since(began)
	if err := r.crowd.await(ctx, round, events); err != nil {
		return err
	}
	waits := round.waits()
	r.res.P50, r.res.P99 = stat.Quantile(waits, 0.5), stat.Quantile(waits, 0.99)
	r.res.Achieved = float64(events) / took.Seconds()
	r.res.Lost, r.res.Duplicates = r.res.Lost+int64(events-len(waits)), r.res.Duplicates+round.twice.Load()
	return nil
}

// everybody sends events to all, the next when the last has read the one before.
func (r *run) everybody(ctx context.Context) error {
	var all []time.Duration
	for i := range r.cfg.Broadcasts {
		r.cfg.Progress(fmt.Sprintf("an event for everybody, %d of %d", i+1, r.cfg.Broadcasts))
		round := r.crowd.expectAll(r.cfg.Connections)
		began := time.Now()
		r.server.Send(ctx, Everybody, 0, r.cfg.Body, r.crowd.sent)
		if err := r.crowd.await(ctx, round, r.cfg.Connections); err != nil {
			return err
		}
		all = append(all, time.Since(began))
		r.res.Lost, r.res.Duplicates = r.res.Lost+int64(r.cfg.Connections)-round.got.Load(), r.res.Duplicates+round.twice.Load()
	}
	if len(all) > 0 {
		r.res.Broadcast = stat.Quantile(all, 0.5)
		r.res.PerSecond = float64(r.cfg.Connections) * 1000 / r.res.Broadcast
	}
	return nil
}
