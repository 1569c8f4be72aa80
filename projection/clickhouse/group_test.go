package clickhouse_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/projection/clickhouse"
	"github.com/waybillhq/waybill/registry"
	engine "github.com/waybillhq/waybill/test/clickhouse"
)

// bare reads values that are JSON as they are.
type bare struct{}

func (bare) Decode(context.Context, []byte, any, *avro.Schema) error { return nil }
func (bare) DecodeAny(_ context.Context, value []byte) (registry.Info, []byte, error) {
	return registry.Info{}, value, nil
}

// world is a topic with events of many keys, and a database for the group.
type world struct {
	t            *testing.T
	engine       *brokertest.Engine
	db           *pgxpool.Pool
	topic, group string
	cl           *kgo.Client
	sent         int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.Migrated(t, incident.Migration(), consumer.Migrations()), pg.Config{})
	w := &world{t: t, engine: brokertest.New(t), db: db, topic: brokertest.Topic(t, "payments"), group: brokertest.Group(t, "columns")}
	w.must(err)
	t.Cleanup(db.Close)
	w.must(consumer.EnsureDays(t.Context(), db))
	w.cl = w.engine.Client(t)
	w.must(broker.Declare(t.Context(), w.cl, w.engine.Capabilities, broker.Topic{Name: w.topic, Partitions: 3}))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) publish(n int) {
	w.t.Helper()
	var recs []*kgo.Record
	for range n {
		w.sent++
		env := event.Envelope{ID: event.NewID(), Source: "/payments", Type: "test.Paid", Subject: fmt.Sprint("account-", w.sent%40), Time: time.Now(), Tenant: "t", Sequence: int64(w.sent)}
		rec := &kgo.Record{Topic: w.topic, Key: []byte(env.Subject), Value: []byte(`{"n":1}`)}
		env.Headers(func(name, v string) {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(v)})
		})
		recs = append(recs, rec)
	}
	w.must(w.cl.ProduceSync(w.t.Context(), recs...).FirstErr())
}

// run has a member of the group write to a sink until it is stopped.
func (w *world) run(s projection.Sink) (stop func()) {
	w.t.Helper()
	g := consumer.New(consumer.Deps{DB: w.db, Client: w.engine.Config.Client, Decoder: bare{}}, consumer.Config{
		Group: w.group, Workers: 3, Timeout: 2 * time.Second, Drain: 50 * time.Millisecond,
		Infrastructure: clickhouse.Infrastructure, Logger: slog.New(slog.DiscardHandler),
	})
	projection.Subscribe(g, bare{}, s, projection.Source{Topic: w.topic})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	return func() {
		w.t.Helper()
		cancel()
		w.must(<-ended)
	}
}

func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(90 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatal("it does not come about: " + what)
		}
	}
}

func (w *world) claims() (n int64) {
	w.t.Helper()
	w.must(w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM waybill.inbox`).Scan(&n))
	return n
}

// dying inserts, and dies before the group's transaction commits.
type dying struct{ *clickhouse.Store }

func (d dying) Write(ctx context.Context, tx pgx.Tx, es []projection.Event) error {
	if err := d.Store.Write(ctx, tx, es); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestAMemberThatDiesBetweenInsertAndCommitLeavesNoEventTwice(t *testing.T) {
	w, server := newWorld(t), engine.Start(t)
	s := open(t, server)
	w.publish(300)
	stop := w.run(dying{s})
	w.await("something is inserted", func() bool { return count(t, s, "events") > 0 })
	stop()
	if n := w.claims(); n != 0 {
		t.Fatalf("%d events count as handled: it died too late", n)
	}
	stop = w.run(s)
	defer func() { stop() }()
	w.await("all events are handled", func() bool { return w.claims() == 300 })
	if n, rows := count(t, s, "events FINAL"), count(t, s, "events"); n != 300 || rows < 300 {
		t.Errorf("%d events are read of %d rows, want 300", n, rows)
	}
}

// failures counts the attempts that failed.
type failures struct {
	*clickhouse.Store
	n atomic.Int64
}

func (f *failures) Write(ctx context.Context, tx pgx.Tx, es []projection.Event) error {
	err := f.Store.Write(ctx, tx, es)
	if err != nil {
		f.n.Add(1)
	}
	return err
}

func TestAnOutageOfClickHouseLosesAndParksNothing(t *testing.T) {
	w, server := newWorld(t), engine.Start(t)
	s := open(t, server)
	w.publish(100)
	failed := &failures{Store: s}
	stop := w.run(failed)
	defer func() { stop() }()
	w.await("the first events", func() bool { return w.claims() == 100 })
	server.Kill()
	w.publish(200)
	w.await("attempts that failed", func() bool { return failed.n.Load() > 2 })
	if n := w.claims(); n != 100 {
		t.Errorf("%d events are handled while ClickHouse is away", n)
	}
	server.Restart()
	w.await("the others", func() bool { return w.claims() == 300 })
	if n := count(t, s, "events FINAL"); n != 300 {
		t.Errorf("%d events, want 300", n)
	}
	var parked int64
	w.must(w.db.QueryRow(t.Context(), `SELECT count(*) FROM waybill.parked`).Scan(&parked))
	if parked != 0 {
		t.Errorf("%d events are parked", parked)
	}
}
