package topic_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/bench/topic"
	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
)

func record(key string, sequence int64) *kgo.Record {
	return &kgo.Record{Key: []byte(key), Headers: []kgo.RecordHeader{
		{Key: event.HeaderSequence, Value: []byte(strconv.FormatInt(sequence, 10))},
	}}
}

func TestEveryEventHasItsOwnPlace(t *testing.T) {
	keys := topic.Keys{Writers: 3, PerWriter: 4}
	tally := topic.NewTally(keys)
	var total int64
	for w := range 3 {
		for j := range keys.Share(w, 100) {
			key, sequence := keys.Of(w, j)
			writer, at, err := tally.Saw(record(key, sequence))
			if err != nil || writer != w || at != j {
				t.Fatalf("event %d of %d came back as %d of %d: %v", j, w, at, writer, err)
			}
			total++
		}
	}
	if total != 100 || tally.Seen != 100 || tally.Reordered != 0 || tally.Duplicates != 0 {
		t.Errorf("%d written, %+v", total, tally)
	}
}

func TestTallyShowsWhatIsWrong(t *testing.T) {
	keys := topic.Keys{Writers: 1, PerWriter: 2}
	for name, c := range map[string]struct {
		sequences                   []int64 // of key 0-0
		seen, reordered, duplicates int64
	}{
		"in order":                {[]int64{1, 2, 3}, 3, 0, 0},
		"one missing":             {[]int64{1, 3}, 2, 0, 0},
		"one late":                {[]int64{1, 3, 2, 4}, 4, 1, 0},
		"one twice":               {[]int64{1, 2, 1, 3}, 3, 0, 1},
		"all twice":               {[]int64{1, 2, 1, 2}, 2, 0, 2},
		"late and twice":          {[]int64{2, 1, 1, 2}, 2, 1, 2},
		"far behind in the bits":  {[]int64{1, 200, 100}, 3, 1, 0},
		"nothing":                 {nil, 0, 0, 0},
		"from the middle onwards": {[]int64{70, 71}, 2, 0, 0},
	} {
		tally := topic.NewTally(keys)
		for _, s := range c.sequences {
			if _, _, err := tally.Saw(record("0-0", s)); err != nil {
				t.Fatal(err)
			}
		}
		if tally.Seen != c.seen || tally.Reordered != c.reordered || tally.Duplicates != c.duplicates {
			t.Errorf("%s: %+v", name, tally)
		}
	}
}

func TestStrangersRecordsAreRefused(t *testing.T) {
	tally := topic.NewTally(topic.Keys{Writers: 2, PerWriter: 2})
	for _, rec := range []*kgo.Record{
		record("2-0", 1), record("0-2", 1), record("0-0", 0), record("0-0", -1), record("-1-0", 1), record("x", 1), record("", 1),
		{Key: []byte("0-0")},
	} {
		if _, _, err := tally.Saw(rec); err == nil {
			t.Errorf("key %q with %v passes", rec.Key, rec.Headers)
		}
	}
}

// world is a topic on a broker, and a writer that writes to it directly.
type world struct {
	engine *brokertest.Engine
	client *kgo.Client
	topic  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	e := brokertest.New(t)
	w := &world{engine: e, topic: brokertest.Topic(t, "t")}
	cl := e.Client(t)
	if err := broker.Declare(t.Context(), cl, e.Capabilities, broker.Topic{Name: w.topic, Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	w.client = e.Client(t, kgo.DefaultProduceTopic(w.topic), kgo.ProducerLinger(0))
	return w
}

func (w *world) write(ctx context.Context, _ int, key string, sequence int64) error {
	return w.client.ProduceSync(ctx, record(key, sequence)).FirstErr()
}

func TestReadSeesAllUpToTheEnd(t *testing.T) {
	w := newWorld(t)
	keys := topic.Keys{Writers: 2, PerWriter: 5}
	read := func() *topic.Tally {
		tally := topic.NewTally(keys)
		err := topic.Read(t.Context(), w.engine.Config, w.topic, func(rec *kgo.Record) error {
			_, _, err := tally.Saw(rec)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return tally
	}
	if got := read(); got.Seen != 0 {
		t.Errorf("of an empty topic: %+v", got)
	}
	for i := range int64(100) {
		key, sequence := keys.Of(int(i%2), i/2)
		if err := w.write(t.Context(), 0, key, sequence); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(); got.Seen != 100 || got.Reordered != 0 || got.Duplicates != 0 {
		t.Errorf("%+v", got)
	}
	if n, err := topic.Size(t.Context(), w.client, w.topic); n != 100 || err != nil {
		t.Errorf("size %d: %v", n, err)
	}
}

func load(write func(context.Context, int, string, int64) error) topic.Load {
	return topic.Load{
		Keys: topic.Keys{Writers: 4, PerWriter: 3}, Rate: 200, Warmup: 100 * time.Millisecond,
		Length: 300 * time.Millisecond, Patience: 20 * time.Second, Write: write,
	}
}

func TestLatencyCountsEveryEvent(t *testing.T) {
	w := newWorld(t)
	got, err := topic.Latency(t.Context(), w.engine.Config, w.topic, load(w.write))
	if err != nil {
		t.Fatal(err)
	}
	if got.Written != 80 || got.Lost != 0 || got.Tally.Seen != 80 || got.Tally.Reordered != 0 || got.Tally.Duplicates != 0 {
		t.Errorf("%+v %+v", got, got.Tally)
	}
}

// A wait counts from the commit's return, whatever the commit itself took, and
// to the record, whatever comes between.
func TestLatencyIsTheTimeBetweenCommitAndRecord(t *testing.T) {
	const pause = 100 * time.Millisecond
	w := newWorld(t)
	l := load(func(ctx context.Context, _ int, key string, sequence int64) error {
		time.AfterFunc(pause, func() { _ = w.write(context.WithoutCancel(ctx), 0, key, sequence) })
		return nil
	})
	got, err := topic.Latency(t.Context(), w.engine.Config, w.topic, l)
	if err != nil {
		t.Fatal(err)
	}
	if least := float64(pause.Milliseconds()); got.Lost != 0 || got.P50 < least || got.Mean < least {
		t.Errorf("%+v for records that come %s after their commit", got, pause)
	}
	w = newWorld(t)
	l = load(func(ctx context.Context, writer int, key string, sequence int64) error {
		err := w.write(ctx, writer, key, sequence)
		time.Sleep(pause) // the record is there long before the commit returns
		return err
	})
	got, err = topic.Latency(t.Context(), w.engine.Config, w.topic, l)
	if err != nil {
		t.Fatal(err)
	}
	if got.Lost != 0 || got.P50 != 0 {
		t.Errorf("%+v for records that come before their commit returns", got)
	}
}

func TestLatencyCountsWhatIsLost(t *testing.T) {
	w := newWorld(t)
	var n atomic.Int64
	l := load(func(ctx context.Context, writer int, key string, sequence int64) error {
		if n.Add(1)%10 == 0 {
			return nil
		}
		return w.write(ctx, writer, key, sequence)
	})
	l.Patience = 500 * time.Millisecond
	got, err := topic.Latency(t.Context(), w.engine.Config, w.topic, l)
	if err != nil || got.Lost < 8 { // a slow machine may have more on its way
		t.Errorf("%+v: %v", got, err)
	}
}

func TestFailedWriteEndsTheLoad(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("broken")
	_, err := topic.Latency(t.Context(), w.engine.Config, w.topic, load(func(context.Context, int, string, int64) error { return broken }))
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	strange := load(func(ctx context.Context, _ int, _ string, sequence int64) error {
		return w.write(ctx, 0, "strange", sequence)
	})
	if _, err := topic.Latency(t.Context(), w.engine.Config, w.topic, strange); err == nil {
		t.Error("a record that nobody wrote passes")
	}
}
