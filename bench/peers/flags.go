package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

type settings struct {
	only    string
	json    bool
	relay   relayConfig
	consume consumeConfig
	queue   queueConfig
	push    pushConfig
}

func (s *settings) parse(args []string) error {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	var program string
	var rounds int
	f.StringVar(&program, "waybill", "bin/waybill", "Waybill's own binary")
	f.StringVar(&s.only, "only", "", "relay, consume, queue or push, or several with commas; all if empty")
	f.IntVar(&rounds, "rounds", 3, "rounds of consume, queue and push, of which the medians count")
	f.Int64Var(&s.relay.Events, "events", 20_000, "events of relay's backlog, and of consume's topic")
	f.IntVar(&s.relay.Rate, "rate", 200, "relay: events a second while the time of one is taken")
	f.DurationVar(&s.relay.Latency, "latency", 5*time.Second, "relay: length of that load")
	f.Int64Var(&s.queue.Messages, "messages", 30_000, "queue: messages of a round; a fifth as many have an effect")
	f.IntVar(&s.queue.Batch, "batch", 100, "queue: messages of one send, and of one receive")
	f.IntVar(&s.queue.Workers, "workers", 8, "queue: senders, and workers")
	f.IntVar(&s.push.Connections, "connections", 5000, "push: streams open at once")
	f.IntVar(&s.push.Rate, "push-rate", 1000, "push: events a second, each for one stream")
	f.DurationVar(&s.push.For, "push-for", 5*time.Second, "push: how long they go on")
	f.IntVar(&s.push.Broadcasts, "broadcasts", 5, "push: events for everybody")
	f.BoolVar(&s.json, "json", false, "print JSON, for machines")
	if err := f.Parse(args); err != nil {
		return err
	}
	progress := func(step string) { fmt.Fprintln(os.Stderr, step+"…") }
	s.relay.Program, s.relay.Progress = program, progress
	s.consume = consumeConfig{Program: program, Events: s.relay.Events, Rounds: rounds, Progress: progress}
	s.queue.Program, s.queue.Rounds, s.queue.Progress = program, rounds, progress
	s.push.Program, s.push.Rounds, s.push.Progress = program, rounds, progress
	return s.check(f.NArg())
}

func (s *settings) check(more int) error {
	if s.only != "" {
		for name := range strings.SplitSeq(s.only, ",") {
			if !slices.Contains([]string{onlyRelay, onlyConsume, onlyQueue, onlyPush}, name) {
				return fmt.Errorf("--only %s: want %s, %s, %s or %s; see --help", name, onlyRelay, onlyConsume, onlyQueue, onlyPush)
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
	case s.push.Connections < 1 || s.push.Connections > 19_000 || s.push.Rate < 1 || s.push.Rate > 100_000 || s.push.For <= 0 || s.push.Broadcasts < 1 || s.push.Broadcasts > 1000:
		return errors.New("--connections must be 1 to 19000, --push-rate 1 to 100000, --push-for above nothing, --broadcasts 1 to 1000; see --help")
	}
	return nil
}

func (s *settings) wanted(name string) bool {
	return s.only == "" || slices.Contains(strings.Split(s.only, ","), name)
}
