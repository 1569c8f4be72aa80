package lag

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// crew is the workers of a process, as they were set.
type crew struct{ n atomic.Int64 }

func (c *crew) SetWorkers(n int) { c.n.Store(int64(n)) }

// ledger is a group's partitions as looks see them.
type ledger struct {
	at    time.Time
	parts []Partition
}

func newLedger(partitions int) *ledger {
	l := &ledger{at: time.Unix(0, 0)}
	for i := range partitions {
		l.parts = append(l.parts, Partition{Topic: "orders", Partition: int32(i), Lag: new(int64), End: new(int64)})
	}
	return l
}

// move writes and reads so many events on a partition.
func (l *ledger) move(partition int, in, out int64) {
	p := &l.parts[partition]
	p.End, p.Lag = amount(*p.End+in), amount(max(0, *p.Lag+in-out))
}

func (l *ledger) look() *Snapshot {
	l.at = l.at.Add(15 * time.Second)
	return &Snapshot{At: l.at, Groups: []Group{{Name: "g", Partitions: append([]Partition(nil), l.parts...)}}}
}

func TestAPartitionThatStandsStillNeverGrowsTheWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 4).Draw(t, "partitions")
		poisoned := rapid.IntRange(0, partitions-1).Draw(t, "poisoned")
		c, l, p := &crew{}, newLedger(partitions), pace{}
		s := NewScaler(c, ScalerConfig{Min: 2, Max: 64})
		for range 30 {
			for i := range partitions {
				in := rapid.Int64Range(1, 5000).Draw(t, "in")
				if i == poisoned {
					l.move(i, in, 0)
				} else {
					l.move(i, in, in)
				}
			}
			if n := s.Step(p.load(l.look(), "g")); n != 2 {
				t.Fatalf("%d workers for a partition that fails", n)
			}
		}
	})
}

func TestALagBesideAPoisonedPartitionGrowsThem(t *testing.T) {
	c, l, p := &crew{}, newLedger(2), pace{}
	s := NewScaler(c, ScalerConfig{Min: 2, Max: 64})
	for range 10 {
		l.move(0, 100, 0)
		l.move(1, 3000, 1000)
		s.Step(p.load(l.look(), "g"))
	}
	if c.n.Load() < 3 || !strings.Contains(s.Why(), "behind to be gone within 1m0s") {
		t.Errorf("%d workers: %s", c.n.Load(), s.Why())
	}
}

func TestWhatALookDoesNotKnowIsUnknown(t *testing.T) {
	l, p := newLedger(2), pace{}
	first := l.look()
	again := *first
	l.move(0, 500, 100)
	blind := l.look()
	blind.Groups[0].Partitions[1].Lag = nil
	l.move(0, 500, 100)
	after, before := l.look(), l.look()
	before.Groups[0].Partitions[0].End = amount(int64(3))
	for what, s := range map[string][]*Snapshot{
		"the first look":          {first},
		"the same look again":     {first, &again},
		"no look":                 {first, nil},
		"no such group":           {first, {At: l.at}},
		"a partition is unknown":  {first, blind},
		"and after that":          {first, blind, after},
		"a topic that went back":  {first, after, before},
		"a place that is new too": {{At: first.At, Groups: []Group{{Name: "g"}}}, after},
	} {
		p = pace{}
		var got Load
		for _, look := range s {
			got = p.load(look, "g")
		}
		if got.Behind != nil || got.In != nil || got.Out != nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
	p = pace{}
	p.load(first, "g")
	if got := p.load(after, "g"); *got.Behind != 800 || *got.In != 1000.0/30 || *got.Out != 200.0/30 || got.Stalled {
		t.Errorf("%v %v %v", *got.Behind, *got.In, *got.Out)
	}
}

func TestWorkersFollowTheLagOfAGroupAndStayWhileItIsUnknown(t *testing.T) {
	w := newWorld(t, 1, quick())
	c := &crew{}
	a, err := NewAutoscaler(AutoscalerDeps{Workers: c, DB: w.db, Client: func(opts ...kgo.Opt) (*kgo.Client, error) {
		return w.engine.Config.Client(append(opts, kgo.Dialer(w.line.dial))...)
	}}, AutoscalerConfig{
		Group:        w.group,
		ScalerConfig: ScalerConfig{Min: 2, Max: 10, Every: 50 * time.Millisecond, Goal: time.Second, Hold: time.Millisecond, HoldMax: time.Millisecond},
		Logger:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.n.Load() != 2 {
		t.Errorf("it begins with %d workers", c.n.Load())
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	place := int64(0)
	w.mark(0, place)
	w.eventually("it grows to its bound", func() bool {
		w.publish(0, 40, 0)
		place += 2
		w.mark(0, place)
		return c.n.Load() == 10
	})
	w.line.set(true)
	for range 20 { // as many steps, while nobody answers
		w.exec(`SELECT pg_sleep(0.05)`)
		if c.n.Load() != 10 {
			t.Fatalf("%d workers while the broker is away", c.n.Load())
		}
	}
	w.line.set(false)
	ends, err := w.adm.ListEndOffsets(t.Context(), w.topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(w.topic, 0)
	w.mark(0, end.Offset)
	w.eventually("it shrinks to its bound", func() bool { return c.n.Load() == 2 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBoundsThatCannotBeKeptAreRefused(t *testing.T) {
	w := newWorld(t, 1, quick())
	quiet := slog.New(slog.DiscardHandler)
	for say, cfg := range map[string]AutoscalerConfig{
		"pool of 34 connections, and it has 16": {Group: "g", ScalerConfig: ScalerConfig{Max: 32}},
		"at most 14 workers":                    {Group: "g", ScalerConfig: ScalerConfig{Min: 15}},
		"no name":                               {},
		"5 to 4 workers":                        {Group: "g", ScalerConfig: ScalerConfig{Min: 5, Max: 4}},
	} {
		cfg.Logger = quiet
		_, err := NewAutoscaler(AutoscalerDeps{Workers: &crew{}, DB: w.db, Monitor: w.m}, cfg)
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want it to say %q", err, say)
		}
	}
	for want, cfg := range map[int]AutoscalerConfig{
		14: {Group: "g"}, 64: {Group: "g", NoConnection: true}, 5: {Group: "g", ScalerConfig: ScalerConfig{Max: 5}},
	} {
		cfg.Logger = quiet
		a, err := NewAutoscaler(AutoscalerDeps{Workers: &crew{}, DB: w.db, Monitor: w.m}, cfg)
		if err != nil || a.scaler.cfg.Max != want {
			t.Errorf("%v %v, want at most %d", a, err, want)
		}
	}
	if _, err := NewAutoscaler(AutoscalerDeps{DB: w.db}, AutoscalerConfig{Group: "g"}); err == nil {
		t.Error("nothing to scale by")
	}
}
