package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// noRegistry knows no schemas: values are JSON.
type noRegistry struct{}

func (noRegistry) DecodeAny(context.Context, []byte) (registry.Info, []byte, error) {
	return registry.Info{}, nil, registry.ErrNotWireFormat
}
func (noRegistry) Decode(context.Context, []byte, any, *avro.Schema) error { return nil }

func TestTheRecordsOfATopicAreSentToTheirTenants(t *testing.T) {
	w := newWorld(t)
	engine := brokertest.New(t)
	w.must(consumer.Migrate(t.Context(), w.db))
	topic := brokertest.Topic(t, "hooked")
	cl := engine.Client(t)
	w.must(broker.Declare(t.Context(), cl, engine.Capabilities, broker.Topic{Name: topic, Partitions: 2}))
	r := newReceiver(t, http.StatusOK)
	e := w.create("ana", r.URL, "orders.>")
	w.create("rui", r.URL, "nothing")
	s, _ := w.run(quick)
	g := consumer.New(consumer.Deps{DB: w.db, Client: engine.Config.Client, Decoder: noRegistry{}}, consumer.Config{Group: brokertest.Group(t, "webhook"), Logger: w.logs.logger()})
	On(g, w.store, topic, consumer.Filter{}, noRegistry{}, s.Wake)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		w.must(<-done)
	})

	record := func(tenant, typ, value string) event.Envelope {
		env := event.Envelope{ID: event.NewID(), Source: "/test", Type: typ, Subject: "order-1", Time: time.Now(), Tenant: tenant}
		rec := &kgo.Record{Topic: topic, Key: []byte("order-1"), Value: []byte(value)}
		if value == "" {
			rec.Value = nil
		}
		env.Headers(func(k, v string) { rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)}) })
		w.must(cl.ProduceSync(t.Context(), rec, rec).FirstErr()) // twice, as after a crash of who publishes
		return env
	}
	record("", "orders.created", `{}`)
	record("ana", "users.created", `{}`)
	record("rui", "orders.created", `{}`)
	env := record("ana", "orders.created", `{"order":1}`)
	w.until("it is delivered", func() bool {
		d, err := w.store.Delivery(t.Context(), "ana", e.ID, env.ID)
		return err == nil && d.State == Delivered
	})
	got := r.got()
	var body struct {
		Type      string
		Timestamp time.Time
		Data      struct{ Order int }
	}
	if len(got) != 1 || json.Unmarshal([]byte(got[0].body), &body) != nil || body.Type != "orders.created" || body.Data.Order != 1 || body.Timestamp.Sub(env.Time).Abs() > time.Second {
		t.Errorf("%+v", got)
	}
}
