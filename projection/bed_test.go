package projection_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// paid is the event of these tests.
type paid struct {
	Account  string `avro:"account"`
	N        int64  `avro:"n"`
	contract *event.Contract
}

func (p paid) EventContract() *event.Contract { return p.contract }
func (p paid) EventKey() string               { return p.Account }
func (p paid) EventSequence() int64           { return p.N }

// bed is a broker with one topic, a registry and a migrated database.
type bed struct {
	t        testing.TB
	engine   *brokertest.Engine
	db       *pgxpool.Pool
	topic    string
	group    string
	decoder  *registry.Decoder
	schema   int
	contract *event.Contract
	cl       *kgo.Client
}

func newPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.Migrated(t, incident.Migration(), consumer.Migrations(), projection.Migration()), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func newBed(t testing.TB, partitions int32) *bed {
	t.Helper()
	b := &bed{t: t, engine: brokertest.New(t), db: newPool(t), topic: brokertest.Topic(t, "payments"), group: brokertest.Group(t, "readers")}
	b.must(consumer.EnsureDays(t.Context(), b.db))
	b.cl = b.engine.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	b.must(broker.Declare(t.Context(), b.cl, b.engine.Capabilities, broker.Topic{Name: b.topic, Partitions: partitions}))
	c, err := event.NewContract(b.topic, "/payments", `{"type":"record","name":"Paid","namespace":"test","fields":[
		{"name":"account","type":"string"},{"name":"n","type":"long"}]}`)
	b.must(err)
	b.contract = c
	client := b.registry()
	b.schema, err = client.RegisterText(t.Context(), c.Subject(), c.Text)
	b.must(err)
	b.decoder = registry.NewDecoder(client)
	return b
}

func (b *bed) registry() *registry.Client {
	b.t.Helper()
	s := server.New(b.engine.Config, server.Config{Topic: brokertest.Topic(b.t, "schemas"), Capabilities: b.engine.Capabilities, Logger: b.engine.Logger})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	<-s.Ready()
	web := httptest.NewServer(s)
	client, err := registry.New(web.URL, registry.Config{})
	b.must(err)
	b.t.Cleanup(func() {
		client.Close()
		web.Close()
		cancel()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	})
	return client
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// record is the nth payment of an account of a tenant.
func (b *bed) record(tenant, account string, n int64) *kgo.Record {
	b.t.Helper()
	d := paid{account, n, b.contract}
	value, err := b.contract.Schema.AppendEncode(registry.AppendHeader(nil, b.schema), d)
	b.must(err)
	env := b.contract.Envelope(event.WithTenant(b.t.Context(), tenant), d, time.Now())
	rec := &kgo.Record{Topic: b.topic, Key: []byte(account), Value: value}
	env.Headers(func(name, v string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(v)})
	})
	return rec
}

// publish has accounts pay n times each, two tenants taking turns.
func (b *bed) publish(accounts int, n int64) {
	b.t.Helper()
	var all []*kgo.Record
	for i := range n {
		for a := range accounts {
			all = append(all, b.record(fmt.Sprintf("tenant-%d", a%2), fmt.Sprintf("account-%d", a), i+1))
		}
	}
	b.must(b.cl.ProduceSync(b.t.Context(), all...).FirstErr())
}

// run has a group project to s until the returned function is called.
func (b *bed) run(s projection.Sink, change ...func(*consumer.Config)) (stop func()) {
	b.t.Helper()
	cfg := consumer.Config{Group: b.group, Workers: 2, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	g := consumer.New(consumer.Deps{DB: b.db, Client: b.engine.Config.Client, Decoder: b.decoder}, cfg)
	projection.Subscribe(g, b.decoder, s, projection.Source{Topic: b.topic})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	var over bool
	stop = func() {
		if over {
			return
		}
		over = true
		cancel()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	}
	b.t.Cleanup(stop)
	return stop
}

// number reads one as the operator does.
func (b *bed) number(sql string, args ...any) (n int64) {
	b.t.Helper()
	b.must(numberOf(b.t.Context(), b.db, projection.Operator, &n, sql, args...))
	return n
}

func numberOf(ctx context.Context, db *pgxpool.Pool, as string, n *int64, sql string, args ...any) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, as); err != nil {
			return err
		}
		return tx.QueryRow(ctx, sql, args...).Scan(n)
	})
}

func (b *bed) await(what string, ok func() bool) {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			b.t.Fatal("it does not come about: " + what)
		}
	}
}
