package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/dispatch"
)

// gateway is a sender as a stranger would put in.
type gateway struct {
	mu    sync.Mutex
	asked []dispatch.Notice
	send  func(ctx context.Context, n int) error // the nth time
}

func (g *gateway) Send(ctx context.Context, n dispatch.Notice) error {
	g.mu.Lock()
	g.asked = append(g.asked, n)
	times := len(g.asked)
	g.mu.Unlock()
	return g.send(ctx, times)
}

func (g *gateway) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}

func through(g *gateway) dispatch.Config {
	return dispatch.Config{Sender: g, SendWithin: time.Minute, Pause: time.Millisecond}
}

func (o order) failure(t *testing.T) string {
	t.Helper()
	told := o.told(t)
	if e, ok := told[len(told)-1].(*contracts.CourierNotificationFailed); ok {
		return e.Reason
	}
	return ""
}

func TestASenderThatMendsItselfHasTheCourierTold(t *testing.T) {
	t.Parallel()
	g := &gateway{send: func(_ context.Context, n int) error {
		if n < 3 {
			return errors.New("503")
		}
		return nil
	}}
	o := newBed(t, through(g)).order()
	o.hear(t, o.billed(1))
	if o.state(t) != dispatch.Sent || g.times() != 3 {
		t.Errorf("%s after %d tries", o.state(t), g.times())
	}
	if n := g.asked[2]; n.Order != o.id || n.Tenant != o.tenant || n.Courier != courierOf(1) || n.Attempt != 1 {
		t.Errorf("asked about %+v", n)
	}
}

func TestASenderThatFailsHasTheNotificationFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send func(context.Context, int) error
		want string
	}{
		"refuses": {func(context.Context, int) error { return errors.New("no such number " + strings.Repeat("x", 9999)) }, "the sender: no such number xxx"},
		"hangs":   {func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, "the sender: "},
		"panics":  {func(context.Context, int) error { panic("out of order") }, "the sender: it panicked: out of order"},
	} {
		g := &gateway{send: c.send}
		cfg := through(g)
		if name == "hangs" {
			cfg.SendWithin = 30 * time.Millisecond
		}
		o := newBed(t, cfg).order()
		o.hear(t, o.billed(1))
		if o.state(t) != dispatch.Failed || g.times() != 3 {
			t.Errorf("%s: %s after %d tries", name, o.state(t), g.times())
		}
		if got := o.failure(t); !strings.HasPrefix(got, c.want) || len(got) > 400 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// One that does not even return holds a place, and once all are held it is asked
// no more; nothing waits for it.
func TestASenderThatNeverReturnsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	g := &gateway{send: func(context.Context, int) error { <-release; return nil }}
	cfg := through(g)
	cfg.SendWithin, cfg.MaxSending = 30*time.Millisecond, 4
	b := newBed(t, cfg)
	for range 4 {
		o := b.order()
		o.hear(t, o.billed(1))
		if o.state(t) != dispatch.Failed {
			t.Errorf("%s", o.state(t))
		}
	}
	if n := g.times(); n != 4 {
		t.Errorf("asked %d times, with room for 4", n)
	}
	close(release)
	o, limit := b.order(), time.After(time.Minute)
	for n := int32(1); o.state(t) != dispatch.Sent; n++ { // the places come back
		o.hear(t, o.billed(n))
		select {
		case <-limit:
			t.Fatal("never asked again")
		default:
		}
	}
}

func TestNobodyIsWokenForWhatIsOver(t *testing.T) {
	t.Parallel()
	g := &gateway{send: func(context.Context, int) error { return nil }}
	o := newBed(t, through(g)).order()
	o.hear(t, o.released(2), o.billed(2), o.billed(1))
	if g.times() != 0 {
		t.Errorf("asked %d times", g.times())
	}
	o.hear(t, o.billed(3), o.billed(3))
	if g.times() != 1 {
		t.Errorf("asked %d times about one notice", g.times())
	}
}

func TestASendThatIsCutShortIsNoFailure(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	g := &gateway{send: func(ctx context.Context, _ int) error { stop(); <-ctx.Done(); return ctx.Err() }}
	o := newBed(t, through(g)).order()
	if got, err := o.Send(ctx, o.billedEvent(1)); err == nil || got.Failure != "" {
		t.Errorf("%+v, %v: the next owner is not to find it failed", got, err)
	}
}

// plain reads bare Avro: what the registry adds is its own package's to test.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

// Through the consumer runtime, with a sender that fails for one courier.
func TestTheGroupTellsAndWithdraws(t *testing.T) {
	t.Parallel()
	g := &gateway{}
	g.send = func(context.Context, int) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.asked[len(g.asked)-1].Attempt == 1 {
			return errors.New("no signal")
		}
		return nil
	}
	cfg := through(g)
	cfg.Tries = 1
	b := newBed(t, cfg)
	if err := consumer.Migrate(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	engine := brokertest.New(t)
	producer := engine.Client(t, kgo.ProducerLinger(0))
	err := broker.Declare(t.Context(), producer, engine.Capabilities,
		broker.Topic{Name: "couriers.reservations", Partitions: 2}, broker.Topic{Name: "billing.events", Partitions: 2})
	var drift *broker.DriftError // on a real Kafka somebody may have made them another way
	if err != nil && !errors.As(err, &drift) {
		t.Fatal(err)
	}
	o := b.order()
	group := consumer.New(consumer.Deps{DB: b.pool, Client: engine.Config.Client, Decoder: plain{}},
		consumer.Config{Group: brokertest.Group(t, "dispatch"), Filter: consumer.Filter{Tenants: []string{o.tenant.String()}}, Logger: slog.New(slog.DiscardHandler)})
	b.Subscribe(group)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- group.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	publish := func(data event.Data) {
		t.Helper()
		c := data.EventContract()
		value, err := c.Schema.Encode(data)
		if err != nil {
			t.Fatal(err)
		}
		env := c.Envelope(event.WithTenant(t.Context(), o.tenant.String()), data, time.Now())
		rec := &kgo.Record{Topic: c.Topic, Key: []byte(data.EventKey()), Value: value}
		env.Headers(func(k, v string) { rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)}) })
		if err := producer.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	until := func(want dispatch.State) {
		t.Helper()
		for limit := time.After(3 * time.Minute); o.state(t) != want; { // a loaded machine is slow
			select {
			case <-limit:
				t.Fatalf("never %s, but %s", want, o.state(t))
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	for attempt := int32(1); attempt <= 2; attempt++ {
		e := o.billedEvent(attempt).Data
		publish(&e)
		until([]dispatch.State{dispatch.Failed, dispatch.Sent}[attempt-1])
	}
	publish(&contracts.CourierReleased{OrderID: o.id, Version: 2, Attempt: 2, CourierID: courierOf(2), Reason: contracts.ReleaseReasonDeclined})
	until(dispatch.Withdrawn)
	if told := o.told(t); len(told) != 2 || g.times() != 2 {
		t.Errorf("told %v, asked %d times", told, g.times())
	}
}
