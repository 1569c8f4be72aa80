package transform

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

// Tests that run in parallel wait more than they work.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// moved is the nth movement of an account.
type moved struct {
	Account string `avro:"account"`
	N       int64  `avro:"n"`
}

var movedContract = event.MustContract("accounts.events", "/accounts", `{"type":"record","name":"Moved","namespace":"test.accounts",
	"fields":[{"name":"account","type":"string"},{"name":"n","type":"long"}]}`)

func (moved) EventContract() *event.Contract { return movedContract }
func (m moved) EventKey() string             { return m.Account }
func (m moved) EventSequence() int64         { return m.N }

// booked is a part of what becomes of a movement.
type booked struct {
	Account string `avro:"account"`
	N       int64  `avro:"n"`
	Part    int64  `avro:"part"`
	Filler  string `avro:"filler"`

	contract *event.Contract
}

const bookedSchema = `{"type":"record","name":"Booked","namespace":"test.books","fields":[
	{"name":"account","type":"string"},{"name":"n","type":"long"},{"name":"part","type":"long"},{"name":"filler","type":"string"}]}`

func (b booked) EventContract() *event.Contract { return b.contract }
func (b booked) EventKey() string               { return b.Account }
func (b booked) EventSequence() int64           { return 10*b.N + b.Part }

// parts is how many events the nth movement becomes.
func parts(n int64) int64 { return n % 3 }

// world is a broker with a registry, a topic of movements and one of bookings.
type world struct {
	t        testing.TB
	engine   *brokertest.Engine
	schemas  *registry.Client
	url      string
	admin    *kgo.Client
	in, out  *event.Contract
	group    string
	schema   int // of what is published
	sent     map[string]int64
	bad      map[string]bool // movements no booking is expected of
	metrics  *prometheus.Registry
	sessions time.Duration
}

func newWorld(t testing.TB, partitions int32) *world {
	t.Helper()
	if !brokertest.Kafka() {
		t.Skip("the embedded broker has no transactions: run this by test/kafka/kafka.sh")
	}
	w := &world{
		t: t, engine: brokertest.New(t), group: brokertest.Group(t, "books"), sent: map[string]int64{},
		bad: map[string]bool{}, metrics: prometheus.NewRegistry(), sessions: 6 * time.Second,
	}
	w.admin = w.engine.Client(t, kgo.ProducerLinger(0))
	w.serveRegistry()
	w.setContracts(brokertest.Topic(t, "accounts"), brokertest.Topic(t, "books"))
	w.declare(w.in.Topic, partitions)
	w.declare(w.out.Topic, 2)
	var err error
	if w.schema, err = w.schemas.RegisterText(t.Context(), w.in.Subject(), w.in.Text); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) setContracts(in, out string) {
	c := *movedContract
	c.Topic = in
	w.in, w.out = &c, event.MustContract(out, "/books", bookedSchema)
}

func (w *world) serveRegistry() {
	s := server.New(w.engine.Config, server.Config{Topic: brokertest.Topic(w.t, "schemas"), Capabilities: w.engine.Capabilities, Logger: w.engine.Logger})
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		w.t.Fatal(err)
	}
	web := httptest.NewServer(s)
	w.t.Cleanup(func() {
		web.Close()
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.url = web.URL
	w.schemas = openRegistry(w.t, web.URL)
}

func openRegistry(t testing.TB, url string) *registry.Client {
	t.Helper()
	c, err := registry.New(url, registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (w *world) declare(topic string, partitions int32) {
	w.t.Helper()
	if err := broker.Declare(w.t.Context(), w.admin, w.engine.Capabilities, broker.Topic{Name: topic, Partitions: partitions}); err != nil {
		w.t.Fatal(err)
	}
}

// record is the next movement of key.
func (w *world) record(key string) *kgo.Record {
	w.sent[key]++
	m := moved{key, w.sent[key]}
	env := w.in.Envelope(event.WithTenant(context.Background(), "tenant-of-"+key), m, time.Now())
	value, err := w.in.Schema.AppendEncode(registry.AppendHeader(nil, w.schema), m)
	if err != nil {
		w.t.Fatal(err)
	}
	rec := &kgo.Record{Topic: w.in.Topic, Key: []byte(key), Value: value}
	env.Headers(func(k, v string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)})
	})
	return rec
}

func (w *world) publish(recs ...*kgo.Record) {
	w.t.Helper()
	if err := w.admin.ProduceSync(w.t.Context(), recs...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// move publishes the next movements of the keys, in that order.
func (w *world) move(keys ...string) {
	w.t.Helper()
	recs := make([]*kgo.Record, len(keys))
	for i, k := range keys {
		recs[i] = w.record(k)
	}
	w.publish(recs...)
}

// moveMany publishes n movements of a dozen accounts.
func (w *world) moveMany(n int) {
	w.t.Helper()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "k" + strconv.Itoa((i*7+i/5)%12)
	}
	w.move(keys...)
}

// quick is a broker's client whose sessions end soon.
type quick struct {
	broker.Config
	session time.Duration
	opts    []kgo.Opt
}

func (q quick) Transact(opts ...kgo.Opt) (*kgo.GroupTransactSession, error) {
	return q.Config.Transact(append(append(opts, kgo.SessionTimeout(q.session), kgo.HeartbeatInterval(q.session/8)), q.opts...)...)
}

// book is the handler of these tests.
func book(out *event.Contract) func(context.Context, event.Of[moved]) ([]event.Data, error) {
	return func(_ context.Context, e event.Of[moved]) ([]event.Data, error) {
		var made []event.Data
		for i := range parts(e.Data.N) {
			made = append(made, booked{Account: e.Data.Account, N: e.Data.N, Part: i, contract: out})
		}
		return made, nil
	}
}

type handler func(context.Context, event.Of[moved]) ([]event.Data, error)

func (w *world) config() Config {
	return Config{
		Group: w.group, Outputs: []*event.Contract{w.out}, Logger: slog.New(slog.DiscardHandler), Metrics: w.metrics,
		Retry: Retry{Attempts: 3, Pause: 10 * time.Millisecond}, TransactionTimeout: 5 * time.Second,
	}
}

// member is a running member of the group.
type member struct {
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func (w *world) start(h handler, change ...func(*Config)) *member {
	w.t.Helper()
	return w.startWith(func(g *Group) { on(g, w.in, h) }, nil, change...)
}

func (w *world) startWith(handlers func(*Group), opts []kgo.Opt, change ...func(*Config)) *member {
	w.t.Helper()
	cfg := w.config()
	for _, f := range change {
		f(&cfg)
	}
	g := New(Deps{Broker: quick{w.engine.Config, w.sessions, opts}, Decoder: registry.NewDecoder(w.schemas), Schemas: w.schemas}, cfg)
	handlers(g)
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	m := &member{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.err = g.Run(ctx)
	}()
	w.t.Cleanup(func() { m.end(w.t) })
	return m
}

func (m *member) end(t testing.TB) {
	t.Helper()
	m.stop()
	select {
	case <-m.done:
	case <-time.After(2 * time.Minute):
		t.Fatal("Run did not return")
	}
	if m.err != nil {
		t.Error(m.err)
	}
}

// until waits for a condition of the world outside.
func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	limit := time.After(3 * time.Minute) // a loaded machine is slow
	for !cond() {
		select {
		case <-limit:
			w.t.Fatalf("never: %s; left of the input: %d", what, w.behind())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// behind is how many movements the group has not committed yet.
func (w *world) behind() (n int64) {
	adm := kadm.NewClient(w.admin)
	ends, err := adm.ListEndOffsets(w.t.Context(), w.in.Topic)
	if err != nil {
		w.t.Fatal(err)
	}
	commits, err := adm.FetchOffsets(w.t.Context(), w.group)
	if err != nil {
		return -1
	}
	ends.Each(func(o kadm.ListedOffset) {
		at, _ := commits.Lookup(o.Topic, o.Partition)
		n += o.Offset - max(at.At, 0)
	})
	return n
}

func (w *world) settled() {
	w.t.Helper()
	w.until("all is committed", func() bool { return w.behind() == 0 })
	w.exactlyOnce()
}

// exactlyOnce holds what readers of committed records see against the oracle:
// each account's movements in order, each with all its parts, once.
func (w *world) exactlyOnce() {
	w.t.Helper()
	seen := map[string][]booked{}
	ids := map[uuid.UUID]bool{}
	for _, rec := range w.committed(w.out.Topic) {
		env, b := w.read(rec)
		if ids[env.ID] {
			w.t.Errorf("id %s twice", env.ID)
		}
		ids[env.ID] = true
		seen[string(rec.Key)] = append(seen[string(rec.Key)], b)
	}
	for key, n := range w.sent {
		var want []booked
		for i := int64(1); i <= n; i++ {
			for p := range parts(i) {
				if !w.bad[fmt.Sprint(key, i)] {
					want = append(want, booked{Account: key, N: i, Part: p})
				}
			}
		}
		if !slices.Equal(seen[key], want) {
			w.t.Errorf("%s has %v, want %v", key, brief(seen[key]), brief(want))
		}
	}
}

func brief(all []booked) (out []string) {
	for _, b := range all {
		out = append(out, fmt.Sprintf("%d.%d", b.N, b.Part))
	}
	return out
}

func (w *world) read(rec *kgo.Record) (event.Envelope, booked) {
	w.t.Helper()
	env, err := event.ReadHeaders(len(rec.Headers), func(i int) (string, []byte) {
		return rec.Headers[i].Key, rec.Headers[i].Value
	}, rec.Timestamp, "here")
	if err != nil {
		w.t.Fatal(err)
	}
	var b booked
	if err := registry.NewDecoder(w.schemas).Decode(w.t.Context(), rec.Value, &b, w.out.Schema); err != nil {
		w.t.Fatal(err)
	}
	return env, b
}

// committed is all that readers of committed records see of a topic, once no
// transaction is open on it.
func (w *world) committed(topic string) (out []*kgo.Record) {
	w.t.Helper()
	adm := kadm.NewClient(w.admin)
	left := map[int32]int64{}
	w.until("no transaction is open", func() bool {
		stable, err1 := adm.ListCommittedOffsets(w.t.Context(), topic)
		ends, err2 := adm.ListEndOffsets(w.t.Context(), topic)
		if err1 != nil || err2 != nil {
			return false
		}
		clear(left)
		quiet := len(ends[topic]) > 0 // else the client does not know yet that it is there
		ends.Each(func(o kadm.ListedOffset) {
			if s, _ := stable.Lookup(o.Topic, o.Partition); o.Err != nil || s.Err != nil || s.Offset != o.Offset {
				quiet = false
			}
			if o.Offset > 0 {
				left[o.Partition] = o.Offset
			}
		})
		return quiet
	})
	cl := w.engine.Client(w.t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			w.t.Fatalf("topic %s was not read to its end: %v", topic, left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
		})
	}
	return out
}

func headerOf(rec *kgo.Record, name string) string {
	for _, h := range rec.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// kills is how often: few in `make test`, more by the environment.
func kills(t *testing.T) int {
	t.Helper()
	v := os.Getenv("WAYBILL_TEST_KILLS")
	if v == "" {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("WAYBILL_TEST_KILLS=%q: want a number", v)
	}
	return n
}

// counted is the handler with a count of its calls by movement.
type counted struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *counted) wrap(h handler) handler {
	c.calls = map[string]int{}
	return func(ctx context.Context, e event.Of[moved]) ([]event.Data, error) {
		c.mu.Lock()
		c.calls[fmt.Sprint(e.Data.Account, e.Data.N)]++
		c.mu.Unlock()
		return h(ctx, e)
	}
}

func (c *counted) of(key string, n int64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[fmt.Sprint(key, n)]
}
