package webhook

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// Of three endpoints one fails: it alone hears of the event again.
func TestOnlyTheEndpointThatFailedIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	var rs []*receiver
	var es []Endpoint
	for _, status := range []int{200, 500, 204} {
		r := newReceiver(t, status)
		rs, es = append(rs, r), append(es, w.create("ana", r.URL))
	}
	s, _ := w.run(quick)
	ev := anEvent("ana", "a")
	w.fan(ev)
	w.until("two have it, and one failed", func() bool {
		return w.delivery(es[0], ev.ID).State == Delivered && w.delivery(es[2], ev.ID).State == Delivered && w.delivery(es[1], ev.ID).Attempts == 1
	})
	rs[1].answer(200)
	w.until("the third has it", func() bool { w.hasten(s); return w.delivery(es[1], ev.ID).State == Delivered })
	for i, want := range []int{1, 2, 1} {
		if n := len(rs[i].got()); n != want {
			t.Errorf("endpoint %d was called %d times, want %d", i, n, want)
		}
	}
}

// A redirect to where a machine's credentials are is an answer like another, and
// not followed.
func TestARedirectIsAFailureAndLeadsNowhere(t *testing.T) {
	w := newWorld(t)
	r, inside := newReceiver(t, http.StatusTemporaryRedirect), newReceiver(t, 200)
	r.answer(http.StatusTemporaryRedirect, "Location", inside.URL+"/latest/meta-data/")
	e := w.create("ana", r.URL)
	w.run(quick)
	ev := anEvent("ana", "a")
	w.fan(ev)
	w.until("it is noted", func() bool { return w.delivery(e, ev.ID).Attempts == 1 })
	if d := w.delivery(e, ev.ID); d.State != Pending || d.Log[0].Status != http.StatusTemporaryRedirect || len(inside.got()) > 0 {
		t.Errorf("%+v, and %d calls of where it pointed", d, len(inside.got()))
	}
}

// A sender that is alone does not wait for the lease of one that was killed.
func TestASenderThatIsAloneFollowsADeadOneAtOnce(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	e := w.create("ana", r.URL)
	ev := anEvent("ana", "a")
	w.fan(ev)
	long := Config{Timeout: 5 * time.Second, Every: 10 * time.Millisecond, Lease: 24 * time.Hour}
	dead := NewSender(w.store, long)
	w.must(dead.beat(t.Context()))
	w.must(dead.discover(t.Context(), true))
	if len(dead.lanes) != 1 {
		t.Fatalf("%d lanes", len(dead.lanes))
	}
	long.Alone = true
	w.run(long)
	w.until("it delivers", func() bool { return w.delivery(e, ev.ID).State == Delivered })
}

type counting struct {
	http.RoundTripper
	n *atomic.Int64
}

func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(req)
}

func TestCallsGoThroughWhatIsWrappedAroundThem(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	e := w.create("ana", r.URL)
	var n atomic.Int64
	cfg := quick
	cfg.Wrap = func(next http.RoundTripper) http.RoundTripper { return counting{next, &n} }
	w.run(cfg)
	ev := anEvent("ana", "a")
	w.fan(ev)
	w.until("it is delivered", func() bool { return w.delivery(e, ev.ID).State == Delivered })
	if n.Load() != 1 {
		t.Errorf("%d calls seen", n.Load())
	}
}

// Events of tenants without endpoints cost no transaction; and from the moment an
// endpoint is there, it hears of all that is written.
func TestAnEndpointHearsOfAllThatIsWrittenAfterIt(t *testing.T) {
	w := newWorld(t)
	engine := brokertest.New(t)
	w.must(consumer.Migrate(t.Context(), w.db))
	topic, group := brokertest.Topic(t, "hooked"), brokertest.Group(t, "webhook")
	cl := engine.Client(t)
	w.must(broker.Declare(t.Context(), cl, engine.Capabilities, broker.Topic{Name: topic, Partitions: 1}))
	r := newReceiver(t, http.StatusOK)
	s, _ := w.run(quick)
	g := consumer.New(consumer.Deps{DB: w.db, Client: engine.Config.Client, Decoder: noRegistry{}},
		consumer.Config{Group: group, Tenants: w.store.Audience(), FlushEvery: 20 * time.Millisecond, Logger: w.logs.logger()})
	On(g, w.store, topic, consumer.Filter{}, noRegistry{}, s.Wake)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		w.must(<-done)
	})
	write := func(tenant string) {
		env := event.Envelope{ID: event.NewID(), Source: "/test", Type: "orders.created", Subject: "o", Time: time.Now(), Tenant: tenant}
		rec := &kgo.Record{Topic: topic, Key: []byte(tenant), Value: []byte(`{}`)}
		env.Headers(func(k, v string) { rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)}) })
		w.must(cl.ProduceSync(t.Context(), rec).FirstErr())
	}
	passed := func(n int) func() bool {
		return func() bool {
			return w.count(`SELECT coalesce(sum(next_offset), 0) FROM waybill.watermark WHERE group_name = $1`, group) == n
		}
	}
	for range 50 {
		write("ana")
	}
	w.until("all are passed over", passed(50))
	if n := w.count(`SELECT count(*) FROM waybill.inbox WHERE group_name = $1`, group); n != 0 {
		t.Errorf("%d events of a tenant without an endpoint cost a transaction", n)
	}
	w.create("ana", r.URL)
	for range 10 {
		write("ana")
		write("rui")
	}
	w.until("those after it are sent", func() bool { return r.distinct() == 10 })
	w.until("all are passed", passed(70))
	if n := w.count(`SELECT count(*) FROM waybill.inbox WHERE group_name = $1`, group); n != 10 {
		t.Errorf("%d events were handled, want the 10 of the tenant with an endpoint", n)
	}
}
