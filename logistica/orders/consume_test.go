package orders_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
)

// plain reads bare Avro: what the registry adds is its own package's to test.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

func recordOf(t *testing.T, tenant uuid.UUID, data event.Data) *kgo.Record {
	t.Helper()
	c := data.EventContract()
	value, err := c.Schema.Encode(data)
	if err != nil {
		t.Fatal(err)
	}
	env := c.Envelope(event.WithTenant(t.Context(), tenant.String()), data, time.Now())
	rec := &kgo.Record{Topic: c.Topic, Key: []byte(data.EventKey()), Value: value}
	env.Headers(func(k, v string) { rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)}) })
	return rec
}

// TestTheGroupSettlesOrdersFromThreeTopics: each topic has its order, and the
// topics overtake each other as they like.
func TestTheGroupSettlesOrdersFromThreeTopics(t *testing.T) {
	t.Parallel()
	b, engine, tenant := newBed(t, orders.Config{}), brokertest.New(t), event.NewID()
	if err := consumer.Migrate(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	producer := engine.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	for _, topic := range []string{"couriers.reservations", "billing.events", "dispatch.events"} {
		err := broker.Declare(t.Context(), producer, engine.Capabilities, broker.Topic{Name: topic, Partitions: 3})
		var drift *broker.DriftError // on a real Kafka somebody may have made it another way
		if err != nil && !errors.As(err, &drift) {
			t.Fatal(err)
		}
	}
	want := map[uuid.UUID]uuid.UUID{} // courier by order
	for range 30 {
		o := b.create(t, tenant)
		first, second := newSaga(o.ID, 1), newSaga(o.ID, 2)
		want[o.ID] = second.reserved.CourierID
		for _, data := range []event.Data{
			first.waits, first.reserved, first.released, second.reserved,
			first.billed, first.voided, second.billed, first.notified, second.notified,
		} {
			producer.Produce(t.Context(), recordOf(t, tenant, data), nil)
		}
	}
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.consume(t, engine, tenant)
	late := time.After(2 * time.Minute)
	for id, courier := range want {
		for {
			o := b.get(t, tenant, id)
			if o.State == orders.Assigned && o.Attempt == 2 && o.Courier == courier && o.Assignment.BilledAt != nil {
				b.requireGapless(t, o)
				break
			}
			select {
			case <-late:
				t.Fatalf("never assigned: %+v\n%+v", o, o.Assignment)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	var parked int
	if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM waybill.parked`).Scan(&parked); err != nil || parked != 0 {
		t.Errorf("%d events are parked, %v", parked, err)
	}
}

// consume hears of one tenant: a real Kafka has the events of other tests too.
func (b bed) consume(t *testing.T, engine *brokertest.Engine, tenant uuid.UUID) {
	t.Helper()
	g := consumer.New(consumer.Deps{DB: b.pool, Decoder: plain{}, Client: engine.Config.Client}, consumer.Config{
		Group: brokertest.Group(t, "orders"), Filter: consumer.Filter{Tenants: []string{tenant.String()}}, FlushEvery: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler), Workers: 4,
	})
	b.Subscribe(g)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
