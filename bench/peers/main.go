// Command peers has Waybill and others do the same work, one after the other
// on the same Postgres and broker, and prints what each took:
//
//   - relay: events from a table to a topic, beside Watermill's forwarder;
//   - consume: handlers whose effects in Postgres happen once, beside
//     Watermill's router;
//   - queue: messages sent, worked on and settled, beside River;
//   - push: streams that stay open, beside Mercure and Centrifuge (Centrifugo's
//     library).
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
	"syscall"
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
	onlyPush    = "push"
)

// report is what was compared; the rest is nil.
type report struct {
	Name    string             `json:"name"`
	Relay   *relayComparison   `json:"relay,omitempty"`
	Consume *consumeComparison `json:"consume,omitempty"`
	Queue   *queueComparison   `json:"queue,omitempty"`
	Push    *pushComparison    `json:"push,omitempty"`
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
	if s.wanted(onlyPush) {
		got, err := runPush(ctx, s.push)
		if err != nil {
			return r, fmt.Errorf("%s: %w", onlyPush, err)
		}
		r.Push = &got
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
	if r.Push != nil {
		tables = append(tables, r.Push)
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
