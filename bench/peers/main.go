// Command peers has Waybill and others do the same work, one after the other
// on the same Postgres and broker, and prints what each took:
//
//   - relay: events from a table to a topic, beside Watermill's forwarder;
//   - consume: handlers whose effects in Postgres happen once, beside
//     Watermill's router;
//   - queue: messages sent, worked on and settled, beside River.
//
// For example:
//
//	make bench-peers
//	make bench-peers ARGS='--only queue --json'
//
// It is a module of its own: what it compares with never enters the product.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signalled()
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// signalled ends with the first signal; a second one ends us at once.
func signalled() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// What there is to compare.
const (
	onlyRelay   = "relay"
	onlyConsume = "consume"
	onlyQueue   = "queue"
)

// report is what was compared; the rest is nil.
type report struct {
	Name    string             `json:"name"`
	Relay   *relayComparison   `json:"relay,omitempty"`
	Consume *consumeComparison `json:"consume,omitempty"`
	Queue   *queueComparison   `json:"queue,omitempty"`
}

type settings struct {
	only    string
	json    bool
	relay   relayConfig
	consume consumeConfig
	queue   queueConfig
}

// command measures, or plays one of the parts of a measurement.
func command(ctx context.Context, args []string, out io.Writer) error {
	if playing(args) {
		return play(ctx, args, out)
	}
	var s settings
	if err := s.parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	r, err := s.measure(ctx)
	if err != nil {
		return err
	}
	if s.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(out)
}

func (s *settings) parse(args []string) error {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	var program string
	var rounds int
	f.StringVar(&program, "waybill", "bin/waybill", "Waybill's own binary")
	f.StringVar(&s.only, "only", "", "relay, consume or queue, or several with commas; all if empty")
	f.IntVar(&rounds, "rounds", 3, "rounds of consume and queue, of which the medians count")
	f.Int64Var(&s.relay.Events, "events", 20_000, "events of relay's backlog, and of consume's topic")
	f.IntVar(&s.relay.Rate, "rate", 200, "relay: events a second while the time of one is taken")
	f.DurationVar(&s.relay.Latency, "latency", 5*time.Second, "relay: length of that load")
	f.Int64Var(&s.queue.Messages, "messages", 30_000, "queue: messages of a round; a fifth as many have an effect")
	f.IntVar(&s.queue.Batch, "batch", 100, "queue: messages of one send, and of one receive")
	f.IntVar(&s.queue.Workers, "workers", 8, "queue: senders, and workers")
	f.BoolVar(&s.json, "json", false, "print JSON, for machines")
	if err := f.Parse(args); err != nil {
		return err
	}
	progress := func(step string) { fmt.Fprintln(os.Stderr, step+"…") }
	s.relay.Program, s.relay.Progress = program, progress
	s.consume = consumeConfig{Program: program, Events: s.relay.Events, Rounds: rounds, Progress: progress}
	s.queue.Program, s.queue.Rounds, s.queue.Progress = program, rounds, progress
	return s.check(f.NArg())
}

func (s *settings) check(more int) error {
	if s.only != "" {
		for name := range strings.SplitSeq(s.only, ",") {
			if !slices.Contains([]string{onlyRelay, onlyConsume, onlyQueue}, name) {
				return fmt.Errorf("--only %s: want %s, %s or %s; see --help", name, onlyRelay, onlyConsume, onlyQueue)
			}
		}
	}
	switch {
	case s.relay.Events < 1 || s.relay.Rate < 1 || s.relay.Latency <= 0 || more > 0:
		return errors.New("--events, --rate and --latency must be above nothing; see --help")
	case s.consume.Rounds < 1 || s.consume.Rounds > 100:
		return fmt.Errorf("--rounds %d: want 1 to 100", s.consume.Rounds)
	case s.queue.Messages < 1 || s.queue.Batch < 1 || s.queue.Batch > 1000 || s.queue.Workers < 1 || s.queue.Workers > 64:
		return errors.New("--messages must be above nothing, --batch 1 to 1000, --workers 1 to 64; see --help")
	}
	return nil
}

func (s *settings) wanted(name string) bool {
	return s.only == "" || slices.Contains(strings.Split(s.only, ","), name)
}

// measure does one after the other, each on engines of its own: no one reads
// past what another left.
func (s *settings) measure(ctx context.Context) (r report, err error) {
	r.Name = "peers"
	if s.wanted(onlyRelay) {
		got, err := runRelay(ctx, s.relay)
		if err != nil {
			return r, fmt.Errorf("%s: %w", onlyRelay, err)
		}
		r.Relay = &got
	}
	if s.wanted(onlyConsume) {
		got, err := runConsume(ctx, s.consume)
		if err != nil {
			return r, fmt.Errorf("%s: %w", onlyConsume, err)
		}
		r.Consume = &got
	}
	if s.wanted(onlyQueue) {
		got, err := runQueue(ctx, s.queue)
		if err != nil {
			return r, fmt.Errorf("%s: %w", onlyQueue, err)
		}
		r.Queue = &got
	}
	return r, nil
}

func (r report) print(out io.Writer) error {
	var tables []interface{ print(io.Writer) error }
	if r.Relay != nil {
		tables = append(tables, r.Relay)
	}
	if r.Consume != nil {
		tables = append(tables, r.Consume)
	}
	if r.Queue != nil {
		tables = append(tables, r.Queue)
	}
	for i, t := range tables {
		if i > 0 {
			_, _ = fmt.Fprintln(out)
		}
		if err := t.print(out); err != nil {
			return err
		}
	}
	return nil
}
