package tracking

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/pg"
)

// plain decodes what was written by the reader's own schema.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

func record(t *testing.T, tenant uuid.UUID, d event.Data) *kgo.Record {
	t.Helper()
	c := d.EventContract()
	body, err := c.Schema.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	env := c.Envelope(event.WithTenant(t.Context(), tenant.String()), d, noon.Add(-time.Hour))
	rec := &kgo.Record{Topic: c.Topic, Key: []byte(d.EventKey()), Value: body}
	env.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec
}

// All of it, as it is wired: events in a broker, a group, and what is seen.
func TestAGroupKeepsTheModel(t *testing.T) {
	t.Parallel()
	b, broker, mark := newBed(t), brokertest.New(t), uuid.NewString() // of this test's records: a real Kafka has those of others too
	b.must(pg.Migrate(t.Context(), b.pool, incident.Migration(), consumer.Migrations()))
	b.must(consumer.EnsureDays(t.Context(), b.pool))
	cl := broker.Client(t)
	for _, topic := range []string{"orders.events", "couriers.events"} {
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 3, -1, nil, topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Fatal(err)
		}
	}
	g := consumer.New(consumer.Deps{DB: b.pool, Client: broker.Config.Client, Decoder: plain{}},
		consumer.Config{Group: brokertest.Group(t, "tracking"), Filter: consumer.Filter{Headers: map[string]string{"test": mark}}, Logger: slog.New(slog.DiscardHandler)})
	b.Subscribe(g)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	defer func() { stop(); b.must(<-done) }()

	rides := make([]ride, 30)
	for i := range rides {
		rides[i] = newRide()
	}
	var records []*kgo.Record
	const fixes = 40
	for n := range int64(fixes) {
		for i, r := range rides {
			switch {
			case n == 3:
				records = append(records, record(t, r.tenant, contracts.OrderCreated{OrderID: r.order, Version: 1, Currency: "BRL"}))
			case n == 5:
				records = append(records, record(t, r.tenant, contracts.OrderStatusChanged{OrderID: r.order, Version: 2, From: "ASSIGNING", To: "ASSIGNED", Actor: "SYSTEM"}),
					record(t, r.tenant, contracts.OrderAssigned{OrderID: r.order, CourierID: r.courier, Version: 3, FeeID: event.NewID(), Attempt: 1}))
			case n == 30 && i%2 == 0:
				records = append(records, record(t, r.tenant, contracts.OrderStatusChanged{OrderID: r.order, Version: 4, From: "ARRIVED_AT_CUSTOMER", To: "DELIVERED", Actor: "COURIER"}))
			}
			records = append(records, record(t, tenants.Platform, fix(r.courier, n)))
		}
	}
	for _, r := range records {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "test", Value: []byte(mark)})
	}
	b.must(cl.ProduceSync(t.Context(), records...).FirstErr())
	for i, r := range rides {
		b.await(func() bool {
			p, err := b.Position(t.Context(), r.tenant, r.order)
			return i%2 == 0 && err != nil && b.newest(r.courier) == fixes-1 || i%2 == 1 && err == nil && p.Seq == fixes-1
		})
		if i%2 == 0 {
			b.await(func() bool { return b.ended(r) })
			b.requireUnseen(r)
		} else {
			b.requireSeen(r, fixes-1)
		}
	}
}

func (b *bed) await(ok func() bool) {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			b.t.Fatal("it does not come")
		}
	}
}

// newest is the number of a courier's position, whoever may see it.
func (b *bed) newest(courier uuid.UUID) (seq int64) {
	b.t.Helper()
	b.asModule(`SELECT coalesce(max(seq), -1) FROM tracking.positions WHERE courier_id = $1`, &seq, courier)
	return seq
}

func (b *bed) ended(r ride) (over bool) {
	b.t.Helper()
	b.asModule(`SELECT coalesce(bool_or(ended_version = 4), false) FROM tracking.rides WHERE order_id = $1`, &over, r.order)
	return over
}

func (b *bed) asModule(sql string, into any, args ...any) {
	b.t.Helper()
	b.must(pgx.BeginFunc(b.t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(b.t.Context(), `SELECT set_config('waybill.tracking', 'on', true)`); err != nil {
			return err
		}
		return tx.QueryRow(b.t.Context(), sql, args...).Scan(into)
	}))
}

// BenchmarkLocated is the fixes that one connection takes in sets of a thousand
// couriers, each of them out with an order.
func BenchmarkLocated(b *testing.B) {
	bed := newBed(b)
	couriers := make([]uuid.UUID, 1000)
	for i := range couriers {
		couriers[i] = bed.out().courier
	}
	b.ResetTimer()
	for n := int64(0); b.Loop(); n++ {
		all := make([]contracts.CourierLocationUpdated, len(couriers))
		for i, c := range couriers {
			all[i] = fix(c, n)
		}
		bed.located(all...)
	}
	b.ReportMetric(float64(len(couriers)*b.N)/b.Elapsed().Seconds(), "fixes/s")
}
