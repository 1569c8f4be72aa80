package push_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/push"
)

func metric(t *testing.T, reg *prometheus.Registry, name string) (v float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				v += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return v
}

func TestEventReachesItsChannelAndNoOther(t *testing.T) {
	w := newWorld(t, 2)
	s := w.site(t, nil)
	a, _ := s.fresh(t, "a")
	b, _ := s.fresh(t, "b")
	for n := 1; n <= 20; n++ {
		w.publish(t, w.record("a", thing{Key: "ka", N: n}), w.record("b", thing{Key: "kb", N: n}))
	}
	cursor := a.want("ka", 1, 20)
	b.want("kb", 1, 20)

	// A cursor is a place, not a permission: on another channel it shows what
	// that channel has after it.
	w.say(t, "b", "kb", 21)
	b.want("kb", 21, 21)
	c := s.open(t, "b", cursor)
	if m := c.next(); m.thing(t).Key != "kb" {
		t.Fatalf("channel b got %s", m.data)
	}
}

func TestHeadersSuitAStream(t *testing.T) {
	w := newWorld(t, 1)
	c, _ := w.site(t, nil).fresh(t, "a")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
	} {
		if got := c.res.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestResumeContinuesBehindTheCursor(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, nil)
	c, ready := s.fresh(t, "a")
	for n := 1; n <= 5; n++ {
		w.say(t, "a", "k", n)
	}
	c.want("k", 1, 2)
	third := c.want("k", 3, 3)
	c.close()
	s.open(t, "a", third).want("k", 4, 5)
	s.open(t, "a", ready).want("k", 1, 5)

	res, err := http.Get(s.url + "?channel=a&last_event_id=" + third)
	if err != nil {
		t.Fatal(err)
	}
	q := &stream{t: t, res: res, rd: bufio.NewReader(res.Body), cancel: func() {}}
	q.want("k", 4, 5)
	q.close()
	http.DefaultClient.CloseIdleConnections()
}

func TestCursorOutlivesTheHub(t *testing.T) {
	w := newWorld(t, 3)
	s := w.site(t, nil)
	c, _ := s.fresh(t, "a")
	w.say(t, "a", "k", 1)
	w.say(t, "a", "k", 2)
	cursor := c.want("k", 1, 2)
	s.stop()
	w.say(t, "a", "k", 3)
	again := w.site(t, nil)
	r := again.open(t, "a", cursor)
	r.want("k", 3, 3)
	w.say(t, "a", "k", 4)
	r.want("k", 4, 4)
}

func TestClientIsResetWhenTheTailNoLongerReachesIt(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) { c.Tail = 10 })
	c, old := s.fresh(t, "a")
	for n := 1; n <= 30; n++ {
		w.say(t, "a", "k", n)
	}
	c.want("k", 1, 30)
	r := s.open(t, "a", old)
	m := r.next()
	if m.event != push.EventReset || m.id == "" {
		t.Fatalf("got %+v, want reset with a cursor", m)
	}
	w.say(t, "a", "k", 31)
	r.want("k", 31, 31)
	s.open(t, "a", m.id).want("k", 31, 31)

	s.stop()
	m = w.site(t, func(c *push.Config) { c.Tail = 10 }).open(t, "a", old).next()
	if m.event != push.EventReset {
		t.Fatalf("after a restart got %+v, want reset", m)
	}
}

func TestTamperedCursorIsReset(t *testing.T) {
	w := newWorld(t, 2)
	s := w.site(t, nil)
	c, _ := s.fresh(t, "a")
	w.say(t, "a", "k", 1)
	id := c.want("k", 1, 1)
	flipped := []byte(id)
	flipped[len(flipped)/2] ^= 1
	for _, bad := range []string{string(flipped), id[:len(id)-4], "42", "%%%", strings.Repeat("A", 100_000), id + "A"} {
		if m := s.open(t, "a", bad).next(); m.event != push.EventReset {
			t.Errorf("cursor %.20q…: got %q, want reset", bad, m.event)
		}
	}
	other := w.site(t, func(c *push.Config) { c.Key = [32]byte{9} })
	if m := other.open(t, "a", id).next(); m.event != push.EventReset {
		t.Errorf("cursor under another key: got %q, want reset", m.event)
	}
}

func TestRecreatedLogResetsItsClients(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) { c.Watch = 50 * time.Millisecond })
	c, _ := s.fresh(t, "a")
	w.say(t, "a", "k", 1)
	cursor := c.want("k", 1, 1)
	if _, err := w.adm.DeleteTopic(t.Context(), w.topic); err != nil {
		t.Fatal(err)
	}
	w.create(t, 1)
	c.rest() // the hub notices and lets go
	again := w.site(t, nil)
	if m := again.open(t, "a", cursor).next(); m.event != push.EventReset {
		t.Fatalf("got %q, want reset", m.event)
	}
}

func TestPartitionsAddedLaterAreRead(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) { c.Watch = 50 * time.Millisecond })
	c, _ := s.fresh(t, "a")
	w.say(t, "a", "k", 1)
	cursor := c.want("k", 1, 1)
	if _, err := w.adm.CreatePartitions(t.Context(), 3, w.topic); err != nil {
		t.Fatal(err)
	}
	c.rest() // the hub notices and lets go
	to := w.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for n := 2; n <= 4; n++ {
		rec := w.record("a", thing{Key: "k", N: n})
		rec.Partition = 3
		if err := to.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(patience)
	r := s.get(t, "a", cursor)
	for ; r.res.StatusCode != http.StatusOK; r = s.get(t, "a", cursor) {
		if time.Now().After(deadline) {
			t.Fatal("the hub does not come back")
		}
	}
	r.want("k", 2, 4)
}

func TestDuplicatePublicationIsDropped(t *testing.T) {
	w := newWorld(t, 2)
	reg := prometheus.NewRegistry()
	s := w.site(t, func(c *push.Config) { c.Registerer = reg })
	c, _ := s.fresh(t, "a")
	var batch []*kgo.Record
	for n := 1; n <= 10; n++ {
		batch = append(batch, w.record("a", thing{Key: "k", N: n}))
	}
	w.publish(t, batch...)
	for _, r := range batch[5:] { // as a relay that died before it noted the rest
		w.publish(t, &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers})
	}
	w.say(t, "a", "k", 11)
	c.want("k", 1, 11)
	if n := metric(t, reg, "waybill_push_duplicates_dropped_total"); n != 5 {
		t.Errorf("%v duplicates counted, want 5", n)
	}
}

func TestRecordThatCannotBeRoutedIsSkippedAndCounted(t *testing.T) {
	w := newWorld(t, 1)
	reg := prometheus.NewRegistry()
	s := w.site(t, func(c *push.Config) { c.Registerer = reg })
	c, _ := s.fresh(t, "a")
	w.publish(t, &kgo.Record{Topic: w.topic, Value: []byte("not json")},
		&kgo.Record{Topic: w.topic, Headers: []kgo.RecordHeader{{Key: event.HeaderSequence, Value: []byte("x")}}})
	w.say(t, "a", "k", 1)
	c.want("k", 1, 1)
	if n := metric(t, reg, "waybill_push_records_skipped_total"); n != 2 {
		t.Errorf("%v records counted as skipped, want 2", n)
	}
}

func TestHubDoesNotLetARouteForgeItsOwnMessages(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) {
		c.Route = func(ctx context.Context, rec *kgo.Record, env *event.Envelope) ([]push.Delivery, error) {
			out, err := route(ctx, rec, env)
			if env.Sequence == 1 {
				out[0].Message.Event = push.EventReset
			}
			if env.Sequence == 2 {
				out[0].Message.Event = "x\ndata: y"
			}
			return out, err
		}
	})
	c, _ := s.fresh(t, "a")
	for n := 1; n <= 3; n++ {
		w.say(t, "a", "k", n)
	}
	c.want("k", 3, 3)
}

func TestClientThatDoesNotReadIsEvictedAndSlowsNobody(t *testing.T) {
	w := newWorld(t, 1)
	reg := prometheus.NewRegistry()
	s := w.site(t, func(c *push.Config) {
		c.Registerer, c.Buffer, c.WriteTimeout = reg, 64, time.Hour
	})
	stuck := s.dial(t, "a")
	c, _ := s.fresh(t, "a")
	// More than both kernels' buffers and the queue hold.
	const n, pad = 600, 60_000
	for i := 1; i <= n; i++ {
		w.publish(t, w.record("a", thing{Key: "k", N: i, Pad: strings.Repeat("x", pad)}))
		c.want("k", i, i)
	}
	if got := metric(t, reg, "waybill_push_evictions_total"); got != 1 {
		t.Fatalf("%v evictions, want 1", got)
	}
	drain(t, stuck) // ends, though its write timeout is an hour
}

// dial asks for a channel on a bare connection.
func (s *site) dial(t *testing.T, channel string) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET /?channel=%s HTTP/1.1\r\nHost: x\r\n\r\n", channel); err != nil {
		t.Fatal(err)
	}
	return conn
}

// drain reads until the server has closed.
func drain(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64<<10)
	for {
		if _, err := conn.Read(b); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // as it comes from the connection
				t.Fatal("connection did not end")
			}
			return
		}
	}
}

func TestHeartbeatKeepsAQuietClientsCursorFresh(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) { c.Tail, c.Heartbeat = 10, 64*time.Millisecond })
	quiet, _ := s.fresh(t, "quiet")
	loud, _ := s.fresh(t, "loud")
	for n := 1; n <= 30; n++ {
		w.say(t, "loud", "k", n)
	}
	loud.want("k", 1, 30)
	cursor := ""
	for range 3 { // the first may have been on its way before the 30th
		for cursor = ""; cursor == ""; {
			m, err := quiet.block()
			if err != nil {
				t.Fatal(err)
			}
			if m.comment == "hb" {
				cursor = m.id
			}
		}
	}
	w.say(t, "quiet", "q", 1)
	s.open(t, "quiet", cursor).want("q", 1, 1)
}

func TestConnectionEndsWithItsLife(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) {
		c.Heartbeat, c.MaxLife, c.Retry = 64*time.Millisecond, 200*time.Millisecond, 1234*time.Millisecond
	})
	c, _ := s.fresh(t, "a")
	if m := c.rest(); m.retry != 1234 {
		t.Fatalf("last block %+v, want retry: 1234", m)
	}
}

func TestShutdownEndsConnections(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) { c.WriteTimeout, c.Buffer = time.Hour, 1<<20 })
	c, _ := s.fresh(t, "a")
	stuck := s.dial(t, "b")
	batch := make([]*kgo.Record, 400)
	for i := range batch {
		batch[i] = w.record("b", thing{Key: "k", N: i, Pad: strings.Repeat("x", 60_000)})
	}
	w.publish(t, batch...)
	w.say(t, "a", "k", 1)
	c.want("k", 1, 1)
	begun := time.Now()
	s.stop()
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("took %s", took)
	}
	if m := c.rest(); m.retry != 500 {
		t.Errorf("last block %+v, want retry: 500", m)
	}
	drain(t, stuck)
}

func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) {
		c.MaxPerChannel, c.MaxConnections, c.MaxPerKey = 2, 4, 3
		c.KeyOf = func(r *http.Request) string { return r.URL.Query().Get("channel")[:1] }
	})
	refused := func(channel string, status int) {
		t.Helper()
		c := s.get(t, channel, "")
		if c.res.StatusCode != status || c.res.Header.Get("Retry-After") == "" {
			t.Fatalf("%s: status %d, Retry-After %q", channel, c.res.StatusCode, c.res.Header.Get("Retry-After"))
		}
		var problem struct{ Status int }
		if err := json.NewDecoder(c.res.Body).Decode(&problem); err != nil || problem.Status != status {
			t.Fatalf("%s: problem %+v, %v", channel, problem, err)
		}
	}
	first, _ := s.fresh(t, "a1")
	s.fresh(t, "a1")
	refused("a1", http.StatusTooManyRequests)
	s.fresh(t, "a2")
	refused("a3", http.StatusTooManyRequests)
	s.fresh(t, "b1")
	refused("b2", http.StatusServiceUnavailable)

	first.close() // frees a place of each bound, once the server has noticed
	deadline := time.Now().Add(patience)
	for s.get(t, "a1", "").res.StatusCode != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("the place of a closed connection was not given again")
		}
	}
}
