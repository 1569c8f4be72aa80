package push_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/push"
)

// A flood of telemetry between two events leaves the first one where a client
// that comes back finds it: in the hub that read it, and in one that is new.
func TestAFloodOfTelemetryLeavesEventsResumable(t *testing.T) {
	const flood = 50_000
	w := newWorld(t, 2)
	pings := brokertest.Topic(t, "pings")
	if _, err := w.adm.CreateTopic(t.Context(), 2, -1, nil, pings); err != nil {
		t.Fatal(err)
	}
	with := func(c *push.Config) {
		c.Topics, c.LatestTopics = append(c.Topics, pings), []string{pings}
		c.Tail, c.Latest, c.Route = 64, 64, func(ctx context.Context, rec *kgo.Record, env *event.Envelope) ([]push.Delivery, error) {
			ds, err := route(ctx, rec, env)
			for i := range ds {
				if rec.Topic == pings {
					ds[i].Latest = env.Subject
				}
			}
			return ds, err
		}
	}
	s := w.site(t, with)
	c, cursor := s.fresh(t, "a")
	c.close()
	watch, _ := s.fresh(t, "watch")
	w.say(t, "a", "order", 1)
	records := make([]*kgo.Record, flood)
	for i := range records {
		records[i] = w.record("others", thing{Key: fmt.Sprint("courier", i%500), N: i})
		records[i].Topic = pings
	}
	w.publish(t, records...)
	for _, p := range []int32{0, 1} { // behind all of the flood, on each partition
		r := w.record("watch", thing{Key: fmt.Sprint("end", p), N: 1})
		r.Topic, r.Partition = pings, p
		w.to(t, r)
		watch.next()
	}
	// Only now: a partition that is read later would push it out of the newest.
	mine := w.record("a", thing{Key: "mine", N: 7})
	mine.Topic = pings
	w.publish(t, w.record("a", thing{Key: "order", N: 2}), mine)
	s.requireBack(t, cursor)
	s.stop()
	w.site(t, with).requireBack(t, cursor)
}

// requireBack reads both events of the order and the position, each once.
func (s *site) requireBack(t *testing.T, cursor string) {
	t.Helper()
	c := s.open(t, "a", cursor)
	defer c.close()
	last := map[string]int{}
	for range 3 {
		m := c.next()
		if m.event != "moved" {
			t.Fatalf("got %q %s", m.event, m.data)
		}
		d := m.thing(t)
		if d.Key == "order" && d.N != last["order"]+1 {
			t.Errorf("event %d after %d", d.N, last["order"])
		}
		last[d.Key] = d.N
	}
	if last["order"] != 2 || last["mine"] != 7 {
		t.Errorf("came back to %v", last)
	}
}

// to publishes to the record's own partition.
func (w *world) to(t *testing.T, r *kgo.Record) {
	t.Helper()
	cl := w.Client(t, kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
