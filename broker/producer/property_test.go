package producer_test

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/broker/embedded"
	"github.com/waybillhq/waybill/broker/producer"
)

// restartable is an embedded broker that comes back where it was.
type restartable struct {
	t    *testing.T
	cfg  embedded.Config
	now  *embedded.Broker
	eng  *brokertest.Engine
	many int
}

func newRestartable(t *testing.T) *restartable {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	r := &restartable{t: t, cfg: embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Logger: quiet}}
	r.start()
	t.Cleanup(func() { _ = r.now.Close() })
	client := r.now.Client()
	client.Logger = quiet
	r.cfg.Listen = client.Brokers[0]
	r.eng = &brokertest.Engine{Config: client}
	return r
}

func (r *restartable) start() {
	b, err := embedded.Start(r.t.Context(), r.cfg)
	must(r.t, err)
	r.now = b
}

func (r *restartable) restart() {
	must(r.t, r.now.Close())
	r.start()
	r.many++
}

// rapidChecks sets how many runs a property gets whose runs take long, unless
// the command line says it.
func rapidChecks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	must(t, f.Value.Set(strconv.Itoa(n)))
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// fates is what became of each record.
type fates struct {
	mu      sync.Mutex
	keys    []string // by number, in the order they were queued
	sizes   []int
	acked   map[int]bool
	gone    map[int]bool  // given up, or not taken back
	offsets map[int]int64 // where the broker said it is; the last copy's
}

// run is one run of the property.
type run struct {
	t     *rapid.T
	b     *restartable
	admin *kadm.Client
	topic string
	p     *producer.Producer[int]
	tp    *producer.Topic[int]
	f     fates
}

const runPartitions = 3

func newRun(t *rapid.T, b *restartable, cl *kgo.Client, topic string) *run {
	r := &run{t: t, b: b, admin: kadm.NewClient(cl), topic: topic}
	r.f.acked, r.f.gone, r.f.offsets = map[int]bool{}, map[int]bool{}, map[int]int64{}
	r.p = producer.New(cl, producer.Config[int]{
		MaxBatchBytes:  rapid.SampledFrom([]int{300, 4 << 10, 1 << 20}).Draw(t, "batch"),
		MaxRecordBytes: 25_000,
		MaxRequests:    rapid.IntRange(1, 3).Draw(t, "requests"),
		Logger:         slog.New(slog.DiscardHandler),
		Refused:        func(producer.Refusal[int]) {},
		Acked: func(b *producer.Batch[int]) {
			r.f.mu.Lock()
			for i, n := range b.Tags {
				if r.f.acked[n] {
					t.Errorf("record %d is acknowledged twice", n)
				}
				r.f.acked[n] = true
				if b.Base >= 0 {
					r.f.offsets[n] = b.Base + int64(i)
				}
			}
			r.f.mu.Unlock()
			r.p.Release(b)
		},
	})
	return r
}

func (r *run) patiently(what string, err error) {
	if err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

// append queues new records, or, of a closed partition, none.
func (r *run) append(t *rapid.T) {
	n := rapid.IntRange(1, 60).Draw(t, "records")
	for range n {
		key := fmt.Sprint("k", rapid.IntRange(0, 5).Draw(t, "key"))
		size := rapid.IntRange(0, 800).Draw(t, "size")
		if rapid.IntRange(0, 40).Draw(t, "huge") == 0 {
			size = rapid.IntRange(5_000, 30_000).Draw(t, "huge size")
		}
		r.f.mu.Lock()
		number := len(r.f.keys)
		r.f.keys, r.f.sizes = append(r.f.keys, key), append(r.f.sizes, size)
		r.f.mu.Unlock()
		if !r.tp.For([]byte(key)).Append(record(key, number, size), number) {
			r.lose(number)
		}
	}
}

func (r *run) lose(numbers ...int) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	for _, n := range numbers {
		if r.f.acked[n] {
			r.t.Errorf("record %d is acknowledged and given up", n)
		}
		r.f.gone[n] = true
	}
}

func (r *run) some(t *rapid.T) *producer.Partition[int] {
	return r.tp.Partition(rapid.IntRange(0, runPartitions-1).Draw(t, "partition"))
}

func (r *run) limit(bytes int) {
	text := strconv.Itoa(bytes)
	resp, err := r.admin.AlterTopicConfigs(r.b.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &text}}, r.topic)
	r.patiently("limit", err)
	r.patiently("limit", resp[0].Err)
}

// takeBack does as a relay does whose partition has stopped: it takes what is
// queued out, and queues it again in order before anything new.
func (r *run) takeBack(t *rapid.T) {
	q := r.some(t)
	closed := q.Closed()
	q.Close()
	numbers := q.Discard()
	q.Open()
	for _, n := range numbers {
		r.f.mu.Lock()
		key, size := r.f.keys[n], r.f.sizes[n]
		r.f.mu.Unlock()
		if key == rejected {
			q.Reject(errRejected, n)
		} else {
			q.Append(record(key, n, size), n)
		}
	}
	if closed {
		q.Close()
	}
}

func (r *run) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"append": r.append,
		"retry":  func(t *rapid.T) { r.some(t).Retry() },
		"skip": func(t *rapid.T) {
			if n, ok := r.some(t).Skip(func(int) bool { return true }); ok {
				r.lose(n)
			}
		},
		"discard":   func(t *rapid.T) { r.lose(r.some(t).Discard()...) },
		"take back": r.takeBack,
		"close":     func(t *rapid.T) { r.some(t).Close() },
		"open":      func(t *rapid.T) { r.some(t).Open() },
		"reject": func(t *rapid.T) {
			r.f.mu.Lock()
			number := len(r.f.keys)
			r.f.keys, r.f.sizes = append(r.f.keys, rejected), append(r.f.sizes, 0)
			r.f.gone[number] = true
			r.f.mu.Unlock()
			r.some(t).Reject(errRejected, number)
		},
		"limit": func(t *rapid.T) {
			r.limit(rapid.SampledFrom([]int{400, 2_000, 20_000, 1_000_000}).Draw(t, "bytes"))
		},
		"restart": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				r.b.restart()
			}
		},
		"flush": func(*rapid.T) { r.patiently("flush", r.p.Flush(patience(r.b.t))) },
	}
}

// rejected is in a key's place of what no record was made of.
const rejected = "rejected"

var errRejected = errors.New("no record can be made")

// settle has everything through that can be.
func (r *run) settle() {
	r.limit(1_000_000)
	for i := range runPartitions {
		q := r.tp.Partition(i)
		for q.Drain(patience(r.b.t)) != nil {
			q.Retry()
			if q.Drain(patience(r.b.t)) == nil {
				break
			}
			if n, ok := q.Skip(func(int) bool { return true }); ok {
				r.lose(n)
			}
		}
	}
}

// check compares the log with what was said of it.
func (r *run) check() {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	seen := map[int]bool{}
	at := map[string]int{} // the last record of a key
	where := map[[2]int64]int{}
	for _, rec := range r.log() {
		n := number(rec)
		where[[2]int64{int64(rec.Partition), rec.Offset}] = n
		if seen[n] {
			continue // a copy
		}
		seen[n] = true
		key := string(rec.Key)
		if key != r.f.keys[n] || len(rec.Value) != r.f.sizes[n]+2 {
			r.t.Errorf("record %d has key %q and %d bytes, want %q and %d", n, key, len(rec.Value), r.f.keys[n], r.f.sizes[n]+2)
		}
		if last, ok := at[key]; ok && last > n {
			r.t.Errorf("key %s: record %d behind %d", key, n, last)
		}
		at[key] = n
	}
	for n, key := range r.f.keys {
		switch {
		case r.f.gone[n]:
		case !r.f.acked[n]:
			r.t.Errorf("record %d of key %s is queued and never acknowledged", n, key)
		case !seen[n]:
			r.t.Errorf("record %d of key %s is lost", n, key)
		}
		if offset, ok := r.f.offsets[n]; ok {
			q := r.tp.For([]byte(key))
			if got, ok := where[[2]int64{int64(q.Index), offset}]; !ok || got != n {
				r.t.Errorf("record %d was said to be at offset %d of partition %d, where there is %d", n, offset, q.Index, got)
			}
		}
	}
}

// log reads all there is.
func (r *run) log() (out []*kgo.Record) {
	ends, err := r.admin.ListEndOffsets(r.b.t.Context(), r.topic)
	r.patiently("ends", err)
	want := int64(0)
	ends.Each(func(o kadm.ListedOffset) { want += o.Offset })
	if want == 0 {
		return nil
	}
	cl, err := r.b.eng.Config.Client(kgo.ConsumeTopics(r.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	r.patiently("client", err)
	defer cl.Close()
	ctx := patience(r.b.t)
	for int64(len(out)) < want {
		got := cl.PollFetches(ctx)
		r.patiently("read", ctx.Err())
		out = append(out, got.Records()...)
	}
	return out
}

// Whatever is refused, retried, skipped, taken out and queued again, however
// large records are and whatever the topic takes meanwhile, and though the
// broker comes and goes: first copies stand in each key's order, nothing is
// lost that was not given up, and what is said of offsets is true.
func TestOrderHoldsWhateverHappensToSomeRecords(t *testing.T) {
	if brokertest.Kafka() {
		t.Skip("it is not ours to stop")
	}
	b := newRestartable(t)
	cl := b.eng.Client(t)
	rapidChecks(t, 15)
	rapid.Check(t, func(rt *rapid.T) {
		r := newRun(rt, b, cl, createTopic(t, cl, runPartitions, nil))
		defer r.p.Close()
		var err error
		r.tp, err = r.p.Topic(patience(t), r.topic)
		r.patiently("topic", err)
		rt.Repeat(r.actions())
		r.settle()
		r.check()
	})
	if b.many == 0 {
		t.Error("the broker never came back")
	}
}

// The same from several goroutines: the race detector looks on.
func TestAPartitionIsSafeForConcurrentUse(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 1, config("max.message.bytes", "2000"))
	p, h := start(t, cl, producer.Config[int]{})
	tp, err := p.Topic(patience(t), topic)
	must(t, err)
	q := tp.Partition(0)
	heard := make(chan struct{})
	defer close(heard)
	go func() {
		for {
			select {
			case <-h.refused:
			case <-heard:
				return
			}
		}
	}()
	end := time.Now().Add(300 * time.Millisecond)
	var g sync.WaitGroup
	var mu sync.Mutex
	gone := map[int]bool{}
	lose := func(n ...int) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range n {
			gone[n] = true
		}
	}
	const writers = 2
	var queued [writers]int
	for k := range writers {
		g.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				size := 10
				if i%50 == 49 {
					size = 3000
				}
				if n := i*writers + k; !q.Append(record(fmt.Sprint("k", k), n, size), n) {
					lose(n)
				}
				queued[k] = i + 1
			}
		})
	}
	for _, do := range []func(){
		q.Retry,
		func() {
			if n, ok := q.Skip(func(int) bool { return true }); ok {
				lose(n)
			}
		},
		func() { lose(q.Discard()...) },
		func() { q.Close(); q.Open() },
	} {
		g.Go(func() {
			for time.Now().Before(end) {
				do()
			}
		})
	}
	g.Wait()
	for q.Drain(patience(t)) != nil {
		if n, ok := q.Skip(func(int) bool { return true }); ok {
			lose(n)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range writers {
		for i := range queued[k] {
			n := i*writers + k
			if _, acked := h.offsets[n]; !acked && !gone[n] {
				t.Fatalf("record %d is neither acknowledged nor given up", n)
			}
		}
		var mine []int
		for _, n := range h.order {
			if n%writers == k {
				mine = append(mine, n)
			}
		}
		if !slices.IsSorted(mine) {
			t.Errorf("writer %d's records are out of order", k)
		}
	}
}
