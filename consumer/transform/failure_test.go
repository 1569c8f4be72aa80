package transform

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

var errBad = errors.New("cannot be booked")

// poison fails movements of accounts by name and number.
func (w *world) poison(h handler, bad ...string) handler {
	for _, b := range bad {
		w.bad[b] = true
	}
	return func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
		if w.bad[fmt.Sprint(e.Data.Account, e.Data.N)] {
			return nil, fmt.Errorf("%w: %d", errBad, e.Data.N)
		}
		return h(ctx, e)
	}
}

// At the head, in the middle and at the end of the log, and two in a row.
func TestPoisonGoesToTheDeadLettersOnceAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a")
	w.moveMany(40)
	w.move("a", "a", "b")
	w.moveMany(40)
	w.move("a")
	var c counted
	w.start(c.wrap(w.poison(book(w.out), "a1", "a2", "a3", "a4")))
	w.settled()
	letters := w.committed(consumer.DeadTopic(w.in.Topic, w.group))
	if len(letters) != 4 {
		t.Fatalf("%d dead letters, want 4", len(letters))
	}
	sources := w.committed(w.in.Topic)
	for i, l := range letters {
		var source *kgo.Record
		for _, r := range sources {
			if fmt.Sprint(r.Offset) == headerOf(l, consumer.HeaderDeadOffset) {
				source = r
			}
		}
		if source == nil || string(source.Value) != string(l.Value) || headerOf(source, event.HeaderID) != headerOf(l, event.HeaderID) || string(l.Key) != "a" {
			t.Fatalf("letter %d: %v of %v", i, l, source)
		}
		for name, want := range map[string]string{
			consumer.HeaderDeadGroup: w.group, consumer.HeaderDeadSource: w.in.Topic, consumer.HeaderDeadPartition: "0",
			consumer.HeaderDeadType: w.in.Type, consumer.HeaderDeadReason: fmt.Sprintf("%v: %d", errBad, i+1),
			consumer.HeaderDeadClass: "other", consumer.HeaderDeadAttempts: "3", consumer.HeaderDeadKey: "a",
		} {
			if got := headerOf(l, name); got != want {
				t.Errorf("letter %d: %s=%q, want %q", i, name, got, want)
			}
		}
		if n := c.of("a", int64(i+1)); n < 3 {
			t.Errorf("movement %d was tried %d times", i+1, n)
		}
	}
}

func TestAFailureThatPassesLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.moveMany(100)
	var tries atomic.Int32
	h := book(w.out)
	w.start(func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
		switch tries.Add(1) % 40 {
		case 7:
			return nil, errBad
		case 23:
			panic("by chance")
		}
		return h(ctx, e)
	}, func(c *Config) { c.Retry.Attempts = 20 })
	w.settled()
}

// The policy's other ends.
func TestARecordIsDroppedOrStopsItsPartitionAsItsRuleSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a", "a", "a", "a")
	rule := consumer.When("bad", consumer.Is(errBad))
	m := w.start(w.poison(book(w.out), "a2"), func(c *Config) { c.Policy = consumer.Policy{rule.ThenStop()} })
	w.until("it stops", func() bool { return w.figure("waybill_transform_stopped_partitions") == 1 })
	w.until("what is before is committed", func() bool { return w.behind() == 4 })
	m.end(t)
	w.start(w.poison(book(w.out), "a2"), func(c *Config) { c.Policy = consumer.Policy{rule.ThenDrop()} })
	w.settled()
}

// figure is the sum of a metric's values.
func (w *world) figure(name string) (sum float64) {
	all, err := w.metrics.Gather()
	if err != nil {
		w.t.Error(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// One partition that waits for a record holds up no other.
func TestAFailingRecordHoldsItsPartitionOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.moveMany(200)
	h := book(w.out)
	var mended atomic.Bool
	w.start(func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
		if e.Partition == 0 && e.Offset == 2 && !mended.Load() {
			return nil, errBad
		}
		return h(ctx, e)
	}, func(c *Config) {
		c.Retry = Retry{Attempts: 1 << 20, Pause: 50 * time.Millisecond, PauseMax: 50 * time.Millisecond}
	})
	w.until("the others are through", func() bool {
		n := w.behind()
		return n > 0 && n == w.lengthOf(0)-2
	})
	mended.Store(true)
	w.settled()
}

// lengthOf is how many movements a partition has.
func (w *world) lengthOf(partition int32) (n int64) {
	for _, r := range w.committed(w.in.Topic) {
		if r.Partition == partition {
			n++
		}
	}
	return n
}

// What was written before the abort stays unseen, and is written again when the
// other topic is there.
func TestAnAbortLeavesNothingVisible(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a", "b")
	late := event.MustContract(brokertest.Topic(t, "late"), "/late", bookedSchema)
	h := book(w.out)
	w.startWith(func(g *Group) {
		on(g, w.in, func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
			made, err := h(ctx, e)
			return append(made, booked{Account: e.Data.Account, N: e.Data.N, contract: late}), err
		})
	}, []kgo.Opt{kgo.UnknownTopicRetries(0), kgo.MetadataMinAge(50 * time.Millisecond)}, func(c *Config) { c.Outputs = append(c.Outputs, late) })
	w.until("it was aborted, twice", func() bool { return w.figure("waybill_transform_infrastructure_errors_total") >= 2 })
	if seen := w.committed(w.out.Topic); len(seen) > 0 || w.behind() != 3 {
		t.Errorf("%d records seen, %d movements left", len(seen), w.behind())
	}
	w.declare(late.Topic, 1)
	w.settled()
	if n := len(w.committed(late.Topic)); n != 3 {
		t.Errorf("%d records on the topic that came late", n)
	}
}

// The broker's word on what was made is a failure of the record it was made of,
// and a dead letter that is too large leaves the value out.
func TestWhatTheBrokerRefusesIsDeadAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "b", "b", "a")
	w.bad["b1"] = true
	huge := &kgo.Record{Topic: w.in.Topic, Key: []byte("x"), Value: make([]byte, 600_000)}
	w.publish(huge)
	h := book(w.out)
	w.startWith(func(g *Group) {
		on(g, w.in, func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
			made, err := h(ctx, e)
			if e.Data.Account == "b" && e.Data.N == 1 {
				return []event.Data{booked{Account: "b", N: 1, Filler: strings.Repeat("x", 600_000), contract: w.out}}, nil
			}
			return made, err
		})
		OnAny(g, w.in.Topic, consumer.Filter{}, func(context.Context, consumer.Raw) ([]*kgo.Record, error) { return nil, errBad })
	}, []kgo.Opt{kgo.ProducerBatchMaxBytes(500_000)})
	w.settled()
	letters := w.committed(consumer.DeadTopic(w.in.Topic, w.group))
	if len(letters) != 2 || string(letters[0].Key) != "b" || string(letters[1].Key) != "x" {
		t.Fatalf("dead letters %v", letters)
	}
	if class := headerOf(letters[0], consumer.HeaderDeadClass); class != "permanent" {
		t.Errorf("class %s", class)
	}
	if left := headerOf(letters[1], consumer.HeaderDeadLeftOut); left != "value" || len(letters[1].Value) > 0 {
		t.Errorf("left out %q, %d bytes of value", left, len(letters[1].Value))
	}
}

// What is made and cannot be vouched for is told with what to do.
func TestWhatCannotBeVouchedForIsDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a", "a", "a")
	foreign := event.MustContract(w.out.Topic, "/x", `{"type":"record","name":"Foreign","fields":[]}`)
	for _, b := range []string{"a1", "a3"} {
		w.bad[b] = true
	}
	h := book(w.out)
	w.start(func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
		switch e.Data.N {
		case 1:
			return []event.Data{nothing{foreign, "k"}}, nil
		case 3:
			return []event.Data{booked{contract: w.out}}, nil
		}
		return h(ctx, e)
	})
	w.settled()
	var reasons string
	for _, l := range w.committed(consumer.DeadTopic(w.in.Topic, w.group)) {
		reasons += headerOf(l, consumer.HeaderDeadReason) + headerOf(l, consumer.HeaderDeadAttempts) + "\n"
	}
	if !strings.Contains(reasons, ErrUnknownType.Error()+"1\n") || !strings.Contains(reasons, ErrMissingKey.Error()+"1\n") {
		t.Errorf("reasons %s", reasons)
	}
}

type nothing struct {
	c   *event.Contract
	key string
}

func (n nothing) EventContract() *event.Contract { return n.c }
func (n nothing) EventKey() string               { return n.key }
func (nothing) EventSequence() int64             { return 0 }

// A registry that is away counts against no record.
func TestInfrastructureIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a", "b")
	h := book(w.out)
	var tries atomic.Int32
	w.start(func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
		if e.Data.Account == "a" && e.Data.N == 1 && tries.Add(1) < 6 {
			return nil, fmt.Errorf("ask: %w", registry.ErrUnavailable)
		}
		return h(ctx, e)
	}, func(c *Config) { c.Retry.Attempts = 1 })
	w.settled()
	if n := w.figure("waybill_transform_failures_total"); n != 0 {
		t.Errorf("%v failures counted", n)
	}
}

// A handler that heeds nothing fails when its time is over, and at shutdown is
// left behind.
func TestAHandlerThatDoesNotReturnHoldsUpNoStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a", "b", "b")
	w.bad["a2"] = true
	h := book(w.out)
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	w.start(func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
		if e.Data.Account == "a" && e.Data.N == 2 {
			<-forever
		}
		return h(ctx, e)
	}, func(c *Config) {
		c.Retry.Attempts, c.Timeout, c.MaxBatchTime = 1, 100*time.Millisecond, 100*time.Millisecond
	})
	w.settled()
	letters := w.committed(consumer.DeadTopic(w.in.Topic, w.group))
	if len(letters) != 1 || headerOf(letters[0], consumer.HeaderDeadClass) != "timeout" {
		t.Errorf("dead letters %v", letters)
	}
	w.move("a")
	w.settled()

	hung := make(chan struct{})
	second := w.start(func(context.Context, event.Of[moved]) ([]event.Data, error) {
		close(hung)
		<-forever
		return nil, nil
	}, func(c *Config) { c.Group, c.Drain = brokertest.Group(t, "other"), 50*time.Millisecond })
	<-hung
	second.end(t)
}
