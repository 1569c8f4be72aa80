package billing_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/billing"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/pg"
)

// plain reads bare Avro: what the registry adds is its own package's to test.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

// world is a bed whose ledger hears of facts from a broker, through the consumer
// runtime, and whose faults are real.
type world struct {
	bed
	t        *testing.T
	flags    *faults.Flags
	producer *kgo.Client
	group    string
	mark     string // of the world's own records: a real Kafka's topics hold those of others too
}

// markOf is the header that bears a record's mark.
const markOf = "test"

func newWorld(t *testing.T, retry consumer.Retry) *world {
	t.Helper()
	b := newBed(t, billing.Config{})
	if err := pg.Migrate(t.Context(), b.pool, faults.Migration()); err != nil {
		t.Fatal(err)
	}
	if err := consumer.Migrate(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	flags := faults.New(b.pool, faults.Config{Every: 20 * time.Millisecond})
	w := &world{bed: bedOn(b.pool, billing.Config{Faults: flags}), t: t, flags: flags, group: brokertest.Group(t, "billing"), mark: uuid.NewString()}
	engine := brokertest.New(t)
	w.producer = engine.Client(t, kgo.ProducerLinger(0))
	err := broker.Declare(t.Context(), w.producer, engine.Capabilities,
		broker.Topic{Name: "couriers.reservations", Partitions: 2}, broker.Topic{Name: "dispatch.events", Partitions: 2})
	var drift *broker.DriftError // somebody made them another way
	if err != nil && !errors.As(err, &drift) {
		t.Fatal(err)
	}
	g := consumer.New(consumer.Deps{DB: b.pool, Client: engine.Config.Client, Decoder: plain{}},
		consumer.Config{Group: w.group, Filter: consumer.Filter{Headers: map[string]string{markOf: w.mark}}, Logger: slog.New(slog.DiscardHandler), Retry: retry})
	w.Subscribe(g)
	w.run(g.Run)
	w.run(flags.Run)
	return w
}

// run runs a part until the test ends.
func (w *world) run(part func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// publish puts facts of tenant into the log.
func (w *world) publish(tenant uuid.UUID, facts ...event.Data) {
	w.t.Helper()
	for _, data := range facts {
		c := data.EventContract()
		value, err := c.Schema.Encode(data)
		if err != nil {
			w.t.Fatal(err)
		}
		env := c.Envelope(event.WithTenant(w.t.Context(), tenant.String()), data, time.Now())
		rec := &kgo.Record{Topic: c.Topic, Key: []byte(data.EventKey()), Value: value, Headers: []kgo.RecordHeader{{Key: markOf, Value: []byte(w.mark)}}}
		env.Headers(func(k, v string) { rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)}) })
		if err := w.producer.ProduceSync(w.t.Context(), rec).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) number(sql string, args ...any) (n int64) {
	w.t.Helper()
	return number(w.t, w.pool, sql, args...)
}

func number(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	limit := time.After(3 * time.Minute) // a loaded machine is slow
	for !cond() {
		select {
		case <-limit:
			w.t.Fatalf("never: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (w *world) set(name string, value int64) {
	w.t.Helper()
	if _, err := w.flags.Set(w.t.Context(), name, value, 0, "ana"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) clear(name string) {
	w.t.Helper()
	if _, err := w.flags.Clear(w.t.Context(), name); err != nil {
		w.t.Fatal(err)
	}
}

func (o order) state(t *testing.T) billing.State {
	t.Helper()
	f, err := o.Fee(t.Context(), o.tenant, o.id)
	if err != nil {
		return ""
	}
	return f.State
}

// impatient never gives up within a test.
var impatient = consumer.Retry{
	Pause: 5 * time.Millisecond, Within: 50 * time.Millisecond,
	Park: 20 * time.Millisecond, ParkFactor: 1, ParkMax: 20 * time.Millisecond, ParkAttempts: 1 << 20,
}

func reservedOf(o order, attempt int32) event.Data {
	return &contracts.CourierReserved{
		OrderID: o.id, Version: int64(2*attempt - 1), Attempt: attempt, CourierID: courierOf(attempt), VehicleType: contracts.VehicleTypeMotorbike,
		ReservedUntil: time.Now(), PickupETA: time.Now(), DeliveryETA: time.Now(),
	}
}

func releasedOf(o order, attempt int32) event.Data {
	return &contracts.CourierReleased{
		OrderID: o.id, Version: int64(2 * attempt), Attempt: attempt, CourierID: courierOf(attempt), Reason: contracts.ReleaseReasonExpired,
	}
}

func TestAVoidThatFailsIsTriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient)
	o, other := w.order(), w.order()
	w.set(faults.CompensationFailure, 100)
	w.publish(o.tenant, reservedOf(o, 1), releasedOf(o, 1), reservedOf(o, 2))
	w.publish(other.tenant, reservedOf(other, 1))
	w.until("two tries of the parked void have failed", func() bool {
		return w.number(`SELECT coalesce(max(attempts), 0) FROM waybill.parked`) >= 2
	})
	w.until("another order goes on meanwhile", func() bool { return other.state(t) == billing.Billed })
	if got := o.standing(t); !slices.Equal(got, []int32{1}) || len(o.told(t)) != 1 {
		t.Errorf("attempts %v stand, told %v", got, o.told(t))
	}
	w.clear(faults.CompensationFailure)
	w.until("the next attempt is billed", func() bool { return slices.Equal(o.standing(t), []int32{2}) })
	if got := o.owed(t); !slices.Equal(got, []int32{2}) || len(o.told(t)) != 3 {
		t.Errorf("attempts %v are owed, told %v", got, o.told(t))
	}
}

func TestAPoisonedEventDiesAndIsHandledOnceItIsRedriven(t *testing.T) {
	t.Parallel()
	w := newWorld(t, consumer.Retry{})
	o, other := w.order(), w.order()
	w.set(faults.PoisonEvent, 1)
	w.publish(o.tenant, reservedOf(o, 1))
	dead := `SELECT count(*) FROM waybill.parked WHERE state = 'dead' AND class = 'permanent' AND failures = $1`
	w.until("it is dead at its first failure", func() bool { return w.number(dead, 1) == 1 })
	w.publish(other.tenant, reservedOf(other, 1))
	w.until("the next event is none of the poisoned", func() bool { return other.state(t) == billing.Billed })
	redrive := func() {
		t.Helper()
		out, err := consumer.Redrive(t.Context(), w.pool, consumer.DeadFilter{Group: w.group}, consumer.Ask{By: "ana", Reason: "try"})
		if err != nil || out.Keys != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	redrive()
	w.until("it dies again while the fault is on", func() bool { return w.number(dead, 2) == 1 })
	w.clear(faults.PoisonEvent)
	redrive()
	w.until("it is billed", func() bool { return o.state(t) == billing.Billed })
	if n := w.number(`SELECT count(*) FROM waybill.parked`); n != 0 {
		t.Errorf("%d events are still parked", n)
	}
}

// Half the orders fail, each the same however often its event is handled.
func TestAFaultIsDecidedTheSameOnEachTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient)
	w.set(faults.BillingFailure, 50)
	for n := range 40 {
		o := w.order()
		want := billing.Billed
		if w.flags.Fails(faults.BillingFailure, o.id.String(), strconv.Itoa(1)) {
			want = billing.Failed
		}
		for range 3 { // handled, and undone by a crash
			var got billing.State
			err := o.try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
				if err := o.reserved(1)(ctx, tx); err != nil {
					return err
				}
				if err := tx.QueryRow(ctx, `SELECT state FROM billing.fees WHERE order_id = $1`, o.id).Scan(&got); err != nil {
					return err
				}
				return errCrash
			})
			if got != want {
				t.Fatalf("order %d: %s, want %s (%v)", n, got, want, err)
			}
		}
		w.publish(o.tenant, reservedOf(o, 1))
		w.until("it is settled", func() bool { return o.state(t) == want })
		if _, failed := o.told(t)[0].(*contracts.PlatformFeeFailed); failed != (want == billing.Failed) {
			t.Errorf("order %d: told %T", n, o.told(t)[0])
		}
	}
}

func TestASlowConsumerTakesItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, impatient)
	w.set(faults.SlowConsumer, 5000)
	o := w.order()
	gone, stop := context.WithCancel(t.Context())
	stop()
	if err := o.reserved(1)(gone, nil); err == nil { // it waits before it touches its transaction
		t.Error("it did not wait")
	}
	w.set(faults.SlowConsumer, 1)
	w.publish(o.tenant, reservedOf(o, 1))
	w.until("it is billed all the same", func() bool { return o.state(t) == billing.Billed })
}
