package producer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/broker/embedded"
	"github.com/waybillhq/waybill/broker/producer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// heard is what a producer reported.
type heard struct {
	mu      sync.Mutex
	offsets map[int]int64 // by tag
	order   []int
	refused chan producer.Refusal[int]
}

func start(t testing.TB, cl *kgo.Client, cfg producer.Config[int]) (*producer.Producer[int], *heard) {
	t.Helper()
	h := &heard{offsets: map[int]int64{}, refused: make(chan producer.Refusal[int], 100)}
	var p *producer.Producer[int]
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Acked = func(b *producer.Batch[int]) {
		h.mu.Lock()
		for i, tag := range b.Tags {
			h.offsets[tag] = b.Base + int64(i)
			h.order = append(h.order, tag)
		}
		h.mu.Unlock()
		p.Release(b)
	}
	cfg.Refused = func(r producer.Refusal[int]) { h.refused <- r }
	p = producer.New(cl, cfg)
	t.Cleanup(p.Close)
	return p, h
}

func createTopic(t testing.TB, cl *kgo.Client, partitions int32, config map[string]*string) string {
	t.Helper()
	name := brokertest.Topic(t, "t")
	_, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, config, name)
	must(t, err)
	return name
}

func read(t testing.TB, e *brokertest.Engine, topic string, n int) []*kgo.Record {
	t.Helper()
	cl := e.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out []*kgo.Record
	for len(out) < n {
		f := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("topic has %d records, want %d", len(out), n)
		}
		out = append(out, f.Records()...)
	}
	return out
}

func patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func record(key string, n int, size int) *producer.Record {
	return &producer.Record{
		Key: []byte(key), Prefix: []byte{0, 1}, Value: bytes.Repeat([]byte{byte(n)}, size),
		Headers: []producer.Header{{Key: "n", Value: fmt.Append(nil, n)}, {Key: "empty"}},
	}
}

func number(r *kgo.Record) (n int) {
	_, _ = fmt.Sscan(string(r.Headers[0].Value), &n)
	return n
}

func TestRecordsArriveAsTheyWereInTheOrderOfTheCalls(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 5, nil)
	p, h := start(t, cl, producer.Config[int]{MaxBatchBytes: 4 << 10})
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	const n = 5000
	for i := range n {
		r := record(fmt.Sprint("k", i%37), i, i%700)
		if !tp.For(r.Key).Append(r, i) {
			t.Fatal("closed")
		}
	}
	must(t, p.Flush(patience(t)))
	recs := read(t, e, topic, n)
	if len(recs) != n {
		t.Fatalf("%d records", len(recs))
	}
	last := map[string]int{}
	beside := kgo.StickyKeyPartitioner(nil).ForTopic(topic)
	for _, r := range recs {
		i := number(r)
		want := record(fmt.Sprint("k", i%37), i, i%700)
		if string(r.Key) != string(want.Key) || !bytes.Equal(r.Value, append(want.Prefix, want.Value...)) || len(r.Headers) != 2 || r.Headers[1].Key != "empty" {
			t.Fatalf("record %d arrived as %+v", i, r)
		}
		if h.offsets[i] != r.Offset {
			t.Fatalf("record %d is at %d, reported at %d", i, r.Offset, h.offsets[i])
		}
		if int(r.Partition) != beside.Partition(&kgo.Record{Key: r.Key}, 5) {
			t.Fatalf("key %s is in partition %d", r.Key, r.Partition)
		}
		if before, ok := last[string(r.Key)]; ok && before > i {
			t.Fatalf("%d after %d", i, before)
		}
		last[string(r.Key)] = i
		if age := time.Since(r.Timestamp); age < -time.Minute || age > time.Hour {
			t.Fatalf("timestamp %v", r.Timestamp)
		}
	}
}

func config(kv ...string) map[string]*string {
	m := map[string]*string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = &kv[i+1]
	}
	return m
}

// The one at fault stands in the middle of a batch of small ones.
func TestARefusedRecordStopsItsPartitionWithNothingBehindItSent(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 1, config("max.message.bytes", "20000"))
	beside := createTopic(t, cl, 1, nil)
	p, h := start(t, cl, producer.Config[int]{})
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	bp, err := p.Topic(t.Context(), beside)
	must(t, err)
	q := tp.Partition(0)
	const n, bad = 300, 137
	for i := range n {
		size := 100
		if i == bad {
			size = 30_000
		}
		q.Append(record("k", i, size), i)
		bp.Partition(0).Append(record("k", i, 10), n+i)
	}
	r := <-h.refused
	if r.Tag != bad || !errors.Is(r.Err, kerr.MessageTooLarge) || r.Partition != q {
		t.Fatalf("refused %d: %v", r.Tag, r.Err)
	}
	must(t, p.Flush(patience(t)))
	if err := q.Drain(patience(t)); !errors.Is(err, producer.ErrStopped) {
		t.Fatalf("drain: %v", err)
	}
	if got := read(t, e, topic, bad); len(got) != bad {
		t.Fatalf("%d records before the refused one, want %d", len(got), bad)
	}
	if got := read(t, e, beside, n); len(got) != n {
		t.Fatalf("%d records in the topic beside, want %d", len(got), n)
	}
	q.Retry() // nothing has changed
	if r := <-h.refused; r.Tag != bad {
		t.Fatalf("refused %d", r.Tag)
	}
	resp, err := kadm.NewClient(cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "max.message.bytes", Value: kadm.StringPtr("1000000")},
	}, topic)
	must(t, err)
	must(t, resp[0].Err)
	q.Retry()
	must(t, p.Flush(patience(t)))
	for i, r := range read(t, e, topic, n) {
		if number(r) != i {
			t.Fatalf("place %d has %d", i, number(r))
		}
	}
}

func TestASkippedRecordIsLeftOut(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 1, nil)
	p, h := start(t, cl, producer.Config[int]{MaxRecordBytes: 1000})
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	q := tp.Partition(0)
	for i := range 10 {
		size := 10
		if i == 4 || i == 5 {
			size = 2000
		}
		q.Append(record("k", i, size), i)
	}
	for _, want := range []int{4, 5} {
		var large *producer.TooLargeError
		if r := <-h.refused; r.Tag != want || !errors.As(r.Err, &large) {
			t.Fatalf("refused %d: %v", r.Tag, r.Err)
		}
		q.Skip(func(tag int) bool { return tag == want })
	}
	must(t, q.Drain(patience(t)))
	got := read(t, e, topic, 8)
	for i, want := range []int{0, 1, 2, 3, 6, 7, 8, 9} {
		if number(got[i]) != want {
			t.Fatalf("place %d has %d", i, number(got[i]))
		}
	}
}

func TestDiscardedRecordsAreTheCallers(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 1, nil)
	p, h := start(t, cl, producer.Config[int]{MaxRecordBytes: 1000})
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	q := tp.Partition(0)
	q.Append(record("k", 0, 10), 0)
	q.Append(record("k", 1, 2000), 1)
	q.Append(record("k", 2, 10), 2)
	<-h.refused
	q.Close()
	if q.Append(record("k", 3, 10), 3) {
		t.Error("a closed partition takes a record")
	}
	if got := q.Discard(); len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Fatalf("discarded %v", got)
	}
	q.Open()
	q.Append(record("k", 4, 10), 4)
	must(t, q.Drain(patience(t)))
	if got := read(t, e, topic, 2); len(got) != 2 || number(got[1]) != 4 {
		t.Fatalf("%d records", len(got))
	}
}

func TestATopicThatIsNotThereIsRefusedAfterAWhile(t *testing.T) {
	e := brokertest.New(t)
	p, _ := start(t, e.Client(t), producer.Config[int]{UnknownTopic: 100 * time.Millisecond})
	if _, err := p.Topic(patience(t), brokertest.Topic(t, "none")); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Fatalf("topic: %v", err)
	}
}

func TestADeletedTopicStopsItsPartitions(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 2, nil)
	p, h := start(t, cl, producer.Config[int]{UnknownTopic: 300 * time.Millisecond})
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	tp.Partition(0).Append(record("k", 1, 10), 1)
	must(t, p.Flush(patience(t)))
	_, err = kadm.NewClient(cl).DeleteTopic(t.Context(), topic)
	must(t, err)
	for range 3 {
		tp.Partition(0).Append(record("k", 2, 10), 2)
	}
	select {
	case <-h.refused:
	case <-patience(t).Done():
		t.Fatal("nobody was told")
	}
	tp.Partition(0).Skip(func(tag int) bool { return tag == 2 }) // one of the three
	<-h.refused
	if got := tp.Partition(0).Discard(); len(got) != 2 {
		t.Fatalf("%d left", len(got))
	}
}

// The broker dies and comes back on its own data: what it had taken and not
// answered is sent again, and stands there at most twice, in order.
func TestABrokerThatRestartsGetsTheRestInOrder(t *testing.T) {
	if brokertest.Kafka() {
		t.Skip("it is not ours to stop")
	}
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	run := func(listen string) *embedded.Broker {
		b, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Listen: listen, Logger: quiet})
		must(t, err)
		return b
	}
	b := run("127.0.0.1:0")
	cfg := b.Client()
	cfg.Logger = quiet
	listen := cfg.Brokers[0]
	e := &brokertest.Engine{Config: cfg}
	cl := e.Client(t)
	topic := createTopic(t, cl, 3, nil)
	p, _ := start(t, cl, producer.Config[int]{})
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	const n = 3000
	for i := range n {
		if i%1000 == 500 {
			must(t, b.Close())
			b = run(listen)
		}
		r := record(fmt.Sprint("k", i%10), i, 50)
		tp.For(r.Key).Append(r, i)
	}
	must(t, p.Flush(patience(t)))
	seen, last := map[int]bool{}, map[string]int{}
	for _, r := range read(t, e, topic, n) {
		i := number(r)
		if seen[i] {
			continue
		}
		seen[i] = true
		if before, ok := last[string(r.Key)]; ok && before > i {
			t.Fatalf("%d after %d", i, before)
		}
		last[string(r.Key)] = i
	}
	if len(seen) != n {
		t.Fatalf("%d of %d records", len(seen), n)
	}
	p.Close()
	must(t, b.Close())
}

// A batch is the callee's from the moment it is reported: a record that comes in
// while it is released must not join it.
func TestARecordThatComesWhileABatchIsReleasedIsNotLost(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 1, nil)
	var p *producer.Producer[int]
	var q *producer.Partition[int]
	const n = 50
	acked := make(chan int, n)
	p = producer.New(cl, producer.Config[int]{
		Logger:  slog.New(slog.DiscardHandler),
		Refused: func(r producer.Refusal[int]) { t.Errorf("refused: %v", r.Err) },
		Acked: func(b *producer.Batch[int]) {
			last := b.Tags[len(b.Tags)-1]
			p.Release(b)
			if last < n {
				q.Append(record("k", last+1, 10), last+1)
			}
			acked <- last
		},
	})
	t.Cleanup(p.Close)
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	q = tp.Partition(0)
	q.Append(record("k", 1, 10), 1)
	for last := 0; last < n; {
		select {
		case last = <-acked:
		case <-time.After(2 * time.Minute):
			t.Fatalf("nothing is acknowledged after record %d", last)
		}
	}
	must(t, q.Drain(patience(t)))
	for i, r := range read(t, e, topic, n) {
		if number(r) != i+1 {
			t.Fatalf("record %d is number %d", i, number(r))
		}
	}
}
