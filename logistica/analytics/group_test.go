package analytics_test

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
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/registry"
)

// told decodes the events of a story, which know their bodies themselves.
type told struct{ json map[string][]byte }

func (d told) DecodeAny(_ context.Context, value []byte) (registry.Info, []byte, error) {
	return registry.Info{}, d.json[string(value)], nil
}

func (told) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	return plain{}.Decode(context.Background(), value, into, reader)
}

// dump is every table, as text.
func (b *bed) dump(t *testing.T) (text string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), projection.Operator); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `SELECT concat_ws(E'\n',
			(SELECT string_agg(e::text, E'\n' ORDER BY id) FROM analytics.events e),
			(SELECT string_agg(c::text, E'\n' ORDER BY c::text) FROM analytics.order_count c WHERE count <> 0),
			(SELECT string_agg(h::text, E'\n' ORDER BY h::text) FROM analytics.orders_by_hour h),
			(SELECT string_agg(m::text, E'\n' ORDER BY m::text) FROM analytics.orders_by_minute m),
			(SELECT string_agg(d::text, E'\n' ORDER BY d::text) FROM analytics.deliveries d),
			(SELECT string_agg(f::text, E'\n' ORDER BY f::text) FROM analytics.fees_by_day f),
			(SELECT string_agg(c::text, E'\n' ORDER BY c::text) FROM analytics.courier_duty c),
			(SELECT string_agg(h::text, E'\n' ORDER BY h::text) FROM analytics.courier_hours h))`).Scan(&text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// As it is wired: events in a broker, a group, and the tables. Reset, it reads
// everything and changes nothing; reset on empty tables it makes the same anew.
func TestAGroupThatIsResetMakesTheSameTables(t *testing.T) {
	t.Parallel()
	b, broker := newBed(t), brokertest.New(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(pg.Migrate(t.Context(), b.pool, incident.Migration(), consumer.Migrations()))
	must(consumer.EnsureDays(t.Context(), b.pool))
	cl, group := broker.Client(t), brokertest.Group(t, "analytics")
	for _, s := range analytics.Sources() {
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, -1, nil, s.Topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Fatal(err)
		}
	}
	all := rapid.Custom(func(r *rapid.T) []fact { return story(r, t) }).Example(11)
	mark := uuid.NewString() // of this test's records: a real Kafka has those of others too
	decoder, n := told{json: map[string][]byte{}}, 0
	for _, f := range all {
		e := f.event
		decoder.json[string(e.Value)] = e.Data
		rec := &kgo.Record{Topic: e.Topic, Key: []byte(e.Subject), Value: e.Value}
		e.Headers(func(name, v string) {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(v)})
		})
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: "test", Value: []byte(mark)})
		must(cl.ProduceSync(t.Context(), rec).FirstErr())
		n++
	}
	deps := consumer.Deps{DB: b.pool, Client: broker.Config.Client, Decoder: decoder}
	through := func() {
		t.Helper()
		g := consumer.New(deps, consumer.Config{Group: group, Workers: 1, Filter: consumer.Filter{Headers: map[string]string{"test": mark}}, Logger: slog.New(slog.DiscardHandler)})
		projection.Subscribe(g, decoder, b.projector, analytics.Sources()...)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }()
		tick, late := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
		defer tick.Stop()
		for claims := 0; claims < n; {
			select {
			case <-tick.C:
				must(b.pool.QueryRow(t.Context(), `SELECT count(*) FROM waybill.inbox`).Scan(&claims))
			case <-late:
				t.Fatalf("%d of %d events are handled", claims, n)
			}
		}
		stop()
		must(<-ended)
	}
	reset := func() {
		t.Helper()
		_, err := consumer.Reset(t.Context(), deps, group, "", consumer.ToBeginning(), consumer.ResetOptions{})
		must(err)
	}
	through()
	compare(t, b.Model, all)
	before := b.dump(t)
	reset()
	through()
	if b.dump(t) != before {
		t.Error("read again on the same tables, it changed them")
	}
	reset()
	must(analytics.Clear(t.Context(), b.pool))
	through()
	if after := b.dump(t); after != before {
		t.Errorf("made anew, the tables differ:\n%s\n\nbefore:\n%s", after, before)
	}
}
