package saga

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/saga/contracts"
)

// Tests that run in parallel wait more than they work: there may be more of
// them than cores, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

var someDeps = Deps{
	DB: &pgxpool.Pool{}, Client: func(...kgo.Opt) (*kgo.Client, error) { return nil, nil }, Decoder: plain{}, Outbox: &outbox.Outbox{},
}

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

// plain reads bare Avro: what the registry adds is its own package's to test.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

// world is a database, a broker and a tenant who books trips. Topics are shared
// where the broker is; the tenant is the test's own.
type world struct {
	t        *testing.T
	engine   *brokertest.Engine
	db       *pgxpool.Pool
	producer *kgo.Client
	tenant   string
	others   []string // tenants for parts of a test
	group    string
	metrics  *prometheus.Registry
	logs     *lines
	patience time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{
		t: t, engine: brokertest.New(t), db: openPool(t, pgtest.New(t)),
		tenant: "tenant-" + uuid.NewString(), group: brokertest.Group(t, "saga"), metrics: prometheus.NewRegistry(), logs: &lines{}, patience: 2 * time.Minute,
	}
	for range 20 {
		w.others = append(w.others, "tenant-"+uuid.NewString())
	}
	w.must(consumer.Migrate(t.Context(), w.db))
	w.must(pg.Migrate(t.Context(), w.db, tables.Migration(), Migration()))
	w.must(tables.EnsureDays(t.Context(), w.db, time.Now()))
	w.producer = w.engine.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.ProducerLinger(0))
	topics := Topics()
	for _, c := range []*event.Contract{tripRequestedC, seatTakenC, cardChargedC, ticketMailedC} {
		topics = append(topics, broker.Topic{Name: c.Topic, Partitions: 2})
	}
	w.must(broker.Declare(t.Context(), w.producer, w.engine.Capabilities, topics...))
	return w
}

// part runs a part of a test as a tenant of its own.
func (w *world) part(claim string, f func(*world)) {
	w.t.Helper()
	tenant := w.others[0]
	w.others = w.others[1:]
	w.t.Run(claim, func(t *testing.T) {
		part := *w
		part.t, part.tenant = t, tenant
		f(&part)
	})
}

func openPool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	db, err := pg.Open(t.Context(), dsn, pg.Config{MaxConns: 14})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// record is an event as its service's relay would publish it.
func (w *world) record(d event.Data, cause *event.Envelope) *kgo.Record {
	w.t.Helper()
	ctx := event.WithTenant(context.Background(), w.tenant)
	if cause != nil {
		ctx = event.WithCause(ctx, cause)
	}
	env := d.EventContract().Envelope(ctx, d, time.Now())
	value, err := d.EventContract().Schema.Encode(d)
	w.must(err)
	rec := &kgo.Record{Topic: d.EventContract().Topic, Key: []byte(env.Subject), Value: value}
	env.Headers(func(k, v string) { rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)}) })
	return rec
}

func (w *world) publish(events ...event.Data) {
	w.t.Helper()
	var recs []*kgo.Record
	for _, d := range events {
		recs = append(recs, w.record(d, nil))
	}
	w.send(recs...)
}

func (w *world) send(recs ...*kgo.Record) {
	w.t.Helper()
	w.must(w.producer.ProduceSync(w.t.Context(), recs...).FirstErr())
}

// observer is one that runs.
type observer struct {
	*Observer
	stop func()
}

// observe starts an observer, with deadlines that hardly anything meets or
// misses by chance: limit says which.
func (w *world) observe(limit time.Duration, change ...func(*Config)) *observer {
	w.t.Helper()
	cfg := Config{
		Group: w.group, Every: 20 * time.Millisecond, Filter: consumer.Filter{Tenants: append([]string{w.tenant}, w.others...)},
		Logger: slog.New(slog.NewTextHandler(w.logs, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	ob := outbox.New(contracts.All(), outbox.Config{})
	o, err := New(Deps{DB: w.db, Client: w.engine.Config.Client, Decoder: plain{}, Outbox: ob}, cfg, trip(limit))
	w.must(err)
	return &observer{o, w.run(o)}
}

// run runs an observer until it is stopped, or the test ends.
func (w *world) run(o *Observer) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				w.t.Error(err)
			}
		case <-time.After(2 * time.Minute):
			w.t.Error("Run did not return")
		}
	})
	w.t.Cleanup(stop)
	return stop
}

const (
	never  = time.Hour
	atOnce = 10 * time.Millisecond
)

// until waits for a condition of the world outside.
func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	limit := time.After(w.patience) // a loaded machine is slow
	for !cond() {
		if strings.Contains(w.logs.String(), "SQLSTATE 42") { // a mistake in a statement: no need to wait
			w.t.Fatalf("not: %s\n%s", what, w.state())
		}
		select {
		case <-limit:
			w.t.Fatalf("never: %s\n%s", what, w.state())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (w *world) state() (out string) {
	page, err := List(w.t.Context(), w.db, Filter{Tenant: w.tenant, Limit: 5})
	if err != nil {
		return err.Error()
	}
	for _, in := range page.Instances {
		if d, err := Get(w.t.Context(), w.db, in.Ref); err == nil {
			out += Timeline(d, time.Now()) + "\n"
		}
	}
	return out + w.logs.String()
}

func (w *world) ref(trip string, round int) Ref { return Ref{w.tenant, "book-trip", trip, round} }

// get is an instance; one that is not there has no state.
func (w *world) get(trip string, round int) Detail {
	w.t.Helper()
	d, err := Get(w.t.Context(), w.db, w.ref(trip, round))
	if err != nil && !contains(err, ErrNotFound.Error()) {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) reaches(trip string, round int, s State, step string) Detail {
	w.t.Helper()
	var d Detail
	w.until(fmt.Sprintf("%s is %s %s", trip, s, step), func() bool {
		d = w.get(trip, round)
		return d.State == s && d.Step == step
	})
	return d
}

// published are the saga's own events in the outbox, in the order they were
// written there.
type published struct {
	event.Envelope
	overdue contracts.StepOverdue // or
	skipped contracts.StepSkipped
}

func (w *world) published(trip string) (out []published) {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT id, subject, source, type, tenant, correlation_id, causation_id, body FROM waybill.outbox_events
		WHERE tenant = $2 AND ($1 = '' OR subject = $1) ORDER BY id`, trip, w.tenant)
	w.must(err)
	out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p published, err error) {
		var body []byte
		if err := row.Scan(&p.ID, &p.Subject, &p.Source, &p.Type, &p.Tenant, &p.CorrelationID, &p.CausationID, &body); err != nil {
			return p, err
		}
		if p.Type == "waybill.saga.StepOverdue" {
			_, err = p.overdue.EventContract().Schema.Decode(body, &p.overdue)
		} else {
			_, err = p.skipped.EventContract().Schema.Decode(body, &p.skipped)
		}
		return p, err
	})
	w.must(err)
	return out
}

func (w *world) number(sql string, args ...any) (n int64) {
	w.t.Helper()
	w.must(within(w.t.Context(), w.db, "", func(tx pgx.Tx) error { return tx.QueryRow(w.t.Context(), sql, args...).Scan(&n) }))
	return n
}

// metric is the sum of a metric's values.
func (w *world) metric(name string) (sum float64) {
	w.t.Helper()
	all, err := w.metrics.Gather()
	w.must(err)
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
