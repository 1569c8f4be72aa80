package interop

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

// paid is an event of an application's.
type paid struct {
	Account string `avro:"account"`
	N       int64  `avro:"n"`
	Cents   int64  `avro:"cents"`
}

const paidSchema = `{"type":"record","name":"Paid","namespace":"interop","fields":[
	{"name":"account","type":"string"},{"name":"n","type":"long"},{"name":"cents","type":"long"}]}`

// paidContract is what the type names; its only test gives it a topic.
var paidContract = event.MustContract("payments", "/payments", paidSchema)

func (paid) EventContract() *event.Contract { return paidContract }
func (p paid) EventKey() string             { return p.Account }
func (p paid) EventSequence() int64         { return p.N }

// An event that the relay published is read by Python, which answers with one
// of its own that a consumer of ours handles.
func TestEventsGoFromTheOutboxToPythonAndBack(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	db := h.database()
	paidContract.Topic = h.topic("payments") // a Kafka is shared
	if _, err := h.client.Register(t.Context(), "FULL_TRANSITIVE", paidContract); err != nil {
		t.Fatal(err)
	}
	ob := outbox.New([]*event.Contract{paidContract}, outbox.Config{})
	if err := ob.Declare(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	handled := make(chan event.Of[paid], 10)
	g := consumer.New(consumer.Deps{DB: db, Client: h.engine.Config.Client, Decoder: registry.NewDecoder(h.client)},
		consumer.Config{Group: brokertest.Group(t, "billing"), Logger: h.engine.Logger})
	consumer.On(g, func(_ context.Context, _ pgx.Tx, e event.Of[paid]) error {
		handled <- e
		return nil
	})
	h.start(g.Run)
	h.start(relay.New(db, h.engine.Config.Client, h.client, relay.Config{Logger: h.engine.Logger}).Run)

	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		return ob.Add(event.WithTenant(t.Context(), "acme"), tx, paid{Account: "a-1", N: 1, Cents: 450})
	})
	if err != nil {
		t.Fatal(err)
	}
	ours := next(t, handled)

	got := h.values(h.python(order{"do": "consume", "topic": paidContract.Topic, "count": 1}))
	want := map[string]any{"account": "a-1", "n": 1.0, "cents": 450.0}
	if len(got) != 1 || !maps.Equal(got[0].Value, want) || got[0].Key != "a-1" {
		t.Fatalf("Python read %+v", got)
	}
	for name, value := range map[string]string{
		"ce_specversion": "1.0", "ce_id": ours.ID.String(), "ce_source": "/payments", "ce_type": "interop.Paid",
		"ce_subject": "a-1", "ce_tenant": "acme", "ce_sequence": "1", "content-type": "application/avro",
	} {
		if got[0].Headers[name] != value {
			t.Errorf("header %s is %q, want %q", name, got[0].Headers[name], value)
		}
	}

	answer := value{Key: "a-1", Value: map[string]any{"account": "a-1", "n": 2, "cents": -450}, Headers: map[string]string{
		"ce_specversion": "1.0", "ce_id": "refund/7", "ce_source": "/python", "ce_type": "interop.Paid", "ce_tenant": "acme",
		"ce_sequence": "2", "ce_causationid": ours.ID.String(),
	}}
	h.python(order{
		"do": "produce", "topic": paidContract.Topic, "schema": paidSchema, "values": []value{answer},
		"serializer": map[string]any{"subject.name.strategy.type": "TOPIC_RECORD"},
	})
	theirs := next(t, handled)
	if theirs.Data != (paid{"a-1", 2, -450}) || theirs.Source != "/python" || theirs.Tenant != "acme" || theirs.Sequence != 2 ||
		theirs.CausationID != ours.ID.String() || theirs.ID != event.ForeignID("/python", "refund/7", theirs.Time) {
		t.Errorf("the group was given %+v", theirs)
	}
	if subjects, err := h.client.Subjects(t.Context(), paidContract.Topic); err != nil || fmt.Sprint(subjects) != fmt.Sprint([]string{paidContract.Subject()}) {
		t.Errorf("Python's schema is not ours: %v, %v", subjects, err)
	}
}

// database has an outbox and what a consumer keeps.
func (h *house) database() *pgxpool.Pool {
	h.Helper()
	db, err := pg.Open(h.Context(), pgtest.New(h), pg.Config{})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(db.Close)
	if err := pg.Migrate(h.Context(), db, tables.Migration(), incident.Migration(), consumer.Migrations()); err != nil {
		h.Fatal(err)
	}
	if err := tables.EnsureDays(h.Context(), db, time.Now()); err != nil {
		h.Fatal(err)
	}
	return db
}

// start runs a part until the test ends.
func (h *house) start(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	h.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			h.Error(err)
		}
	})
}

func next[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing was handled within a minute")
	}
	return v
}
