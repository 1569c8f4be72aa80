package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/webhook/sign"
)

// receiver is somebody's server.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []call
	status int
	header http.Header
}

type call struct {
	http.Header
	body string
	path string
}

func newReceiver(t testing.TB, status int) *receiver {
	r := &receiver{status: status, header: http.Header{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, call{req.Header.Clone(), string(b), req.URL.Path})
		for k, v := range r.header {
			w.Header()[k] = v
		}
		w.WriteHeader(r.status)
		_, _ = fmt.Fprint(w, "an answer")
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int, header ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
	for i := 0; i+1 < len(header); i += 2 {
		r.header.Set(header[i], header[i+1])
	}
}

func (r *receiver) got() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]call(nil), r.calls...)
}

func (r *receiver) distinct() int {
	ids := map[string]bool{}
	for _, c := range r.got() {
		ids[c.Get(sign.HeaderID)] = true
	}
	return len(ids)
}

var quick = Config{Timeout: 5 * time.Second, Every: 10 * time.Millisecond}

// run runs a sender until stop is called, or the test ends.
func (w *world) run(cfg Config) (s *Sender, stop func()) {
	w.t.Helper()
	cfg.Logger = w.logs.logger()
	s = NewSender(w.store, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				w.t.Error(err)
			}
		case <-time.After(patience):
			w.t.Error("the sender does not end")
		}
	})
	w.t.Cleanup(stop)
	return s, stop
}

// hasten makes what waits for a retry due, and closes breakers.
func (w *world) hasten(s *Sender) {
	w.t.Helper()
	w.must(asOperator(w.t.Context(), w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), `UPDATE webhook.due SET next_at = now() - interval '1 s' WHERE NOT fresh AND next_at > now()`)
		return err
	}))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		l.health.openUntil = time.Time{}
	}
}

func TestAnEventIsSentSigned(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, http.StatusAccepted)
	e := w.create("ana", r.URL+"/hook")
	w.run(quick)
	ev := anEvent("ana", "orders.created")
	w.fan(ev)
	w.until("delivery", func() bool { return w.delivery(e, ev.ID).State == Delivered })
	got := r.got()
	if len(got) != 1 || got[0].body != string(ev.Body) || got[0].path != "/hook" ||
		got[0].Get("Content-Type") != "application/json" || got[0].Get("User-Agent") != "Waybill-Webhooks/1" || got[0].Get(sign.HeaderID) != ev.ID.String() {
		t.Fatalf("%+v", got)
	}
	v, err := sign.NewVerifier(w.key(e))
	w.must(err)
	if err := v.Verify(got[0].Header, []byte(got[0].body)); err != nil {
		t.Error(err)
	}
	d := w.delivery(e, ev.ID)
	if d.Attempts != 1 || len(d.Log) != 1 || d.Log[0].Status != 202 || d.Log[0].Answer != "" || d.FinishedAt == nil || d.NextAt != nil {
		t.Errorf("%+v", d)
	}
	if n := w.count(`SELECT count(*) FROM webhook.due`); n != 0 {
		t.Errorf("%d are due", n)
	}
}

func TestDuringARotationBothSecretsSign(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	e := w.create("ana", r.URL)
	old := w.key(e)
	w.run(quick)
	w.fan(anEvent("ana", "a"))
	w.until("a first call", func() bool { return len(r.got()) == 1 })
	two, err := w.store.Rotate(t.Context(), "ana", e.ID, time.Hour)
	w.must(err)
	accepts := func(key string, c call) bool {
		v, err := sign.NewVerifier(key)
		w.must(err)
		return v.Verify(c.Header, []byte(c.body)) == nil
	}
	w.until("the new secret signs", func() bool {
		w.fan(anEvent("ana", "a"))
		got := r.got()
		last := got[len(got)-1]
		if !accepts(old, last) {
			t.Fatal("the old secret does not sign")
		}
		return accepts(two[0].Key, last)
	})
	_, err = w.store.Rotate(t.Context(), "ana", e.ID, 0)
	w.must(err)
	w.until("the old ones sign no more", func() bool {
		w.fan(anEvent("ana", "a"))
		got := r.got()
		return !accepts(old, got[len(got)-1]) && !accepts(two[0].Key, got[len(got)-1])
	})
}

func TestWhatFailsIsTriedAgainUnderTheSameID(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 500)
	e := w.create("ana", r.URL)
	s, _ := w.run(quick)
	ev := anEvent("ana", "a")
	w.fan(ev)
	for n := 1; n <= 7; n++ { // its breaker opens on the way
		w.until("an attempt", func() bool {
			w.hasten(s)
			return w.delivery(e, ev.ID).Attempts >= n
		})
	}
	d := w.delivery(e, ev.ID)
	if d.State != Pending || d.NextAt == nil || d.Log[0].Status != 500 || d.Log[0].Answer != "an answer" {
		t.Errorf("%+v", d)
	}
	if got, err := w.store.Get(t.Context(), "ana", e.ID); err != nil || got.Failures == 0 || got.FailingSince == nil || got.OpenUntil == nil {
		t.Errorf("%+v, %v", got, err)
	}
	r.answer(200)
	w.until("delivery", func() bool {
		w.hasten(s)
		return w.delivery(e, ev.ID).State == Delivered
	})
	if r.distinct() != 1 {
		t.Errorf("%d ids", r.distinct())
	}
	w.until("health", func() bool {
		got, err := w.store.Get(t.Context(), "ana", e.ID)
		return err == nil && got.Failures == 0 && got.FailingSince == nil
	})
}

func TestRetryAfterPutsOffTheEndpoint(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 429)
	r.answer(429, "Retry-After", "300")
	e := w.create("ana", r.URL)
	w.run(quick)
	a := anEvent("ana", "a")
	w.fan(a)
	w.until("an attempt", func() bool { return w.delivery(e, a.ID).Attempts == 1 })
	if d := w.delivery(e, a.ID); time.Until(*d.NextAt) < 4*time.Minute {
		t.Errorf("next at %s", d.NextAt)
	}
	b := anEvent("ana", "a")
	w.fan(b)
	got, err := w.store.Get(t.Context(), "ana", e.ID)
	if err != nil || got.OpenUntil == nil || time.Until(*got.OpenUntil) < 4*time.Minute {
		t.Errorf("%+v, %v", got, err)
	}
	if n := len(r.got()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestGoneDisablesTheEndpoint(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, http.StatusGone)
	e := w.create("ana", r.URL)
	w.run(quick)
	ev := anEvent("ana", "a")
	w.fan(ev)
	w.until("it is disabled", func() bool {
		got, err := w.store.Get(t.Context(), "ana", e.ID)
		return err == nil && got.State == Disabled && strings.Contains(got.Reason, "410")
	})
	if d := w.delivery(e, ev.ID); d.State != Failed {
		t.Errorf("%+v", d)
	}
	seen, err := incident.List(t.Context(), w.db, time.Time{}, 10)
	if err != nil || len(seen) != 1 || seen[0].Kind != "endpoint disabled" || strings.Contains(seen[0].Text, r.URL) {
		t.Errorf("%+v, %v", seen, err)
	}
	// After it is mended: enabled, and what failed is sent.
	r.answer(200)
	w.must(w.store.Enable(t.Context(), "ana", e.ID))
	page, err := w.store.Replay(t.Context(), "ana", e.ID, Replay{Failed: true})
	if err != nil || page.Count != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	w.until("delivery", func() bool { return w.delivery(e, ev.ID).State == Delivered })
}

func TestAnEndpointThatAlwaysFailsIsDisabledAndWhatWaitsFails(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 500)
	e := w.create("ana", r.URL)
	cfg := quick
	cfg.DisableAfter = 50 * time.Millisecond
	s, _ := w.run(cfg)
	var events []Event
	for range 20 {
		events = append(events, anEvent("ana", "a"))
	}
	w.fan(events...)
	w.until("it is disabled", func() bool {
		w.hasten(s)
		got, err := w.store.Get(t.Context(), "ana", e.ID)
		return err == nil && got.State == Disabled && strings.Contains(got.Reason, "every call has failed since")
	})
	w.until("what waits fails", func() bool { return w.count(`SELECT count(*) FROM webhook.due`) == 0 })
	all, err := w.store.Deliveries(t.Context(), "ana", e.ID, DeliveryFilter{State: Failed})
	if err != nil || len(all) != 20 {
		t.Errorf("%d failed, %v", len(all), err)
	}
}

func TestWhatFailsForTooLongIsGivenUp(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 400)
	e := w.create("ana", r.URL)
	cfg := quick
	cfg.Window = time.Millisecond
	w.run(cfg)
	ev := anEvent("ana", "a")
	w.fan(ev)
	w.until("it is given up", func() bool { return w.delivery(e, ev.ID).State == Failed })
}

func TestAnOrderedEndpointGetsAKeyInOrder(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	seen, under, failed := map[string][]string{}, map[string]int{}, map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		key, n, _ := strings.Cut(string(b), "/")
		mu.Lock()
		under[key]++
		if under[key] > 1 {
			t.Errorf("two of %s at once", key)
		}
		fail := n == "2" && !failed[key]
		failed[key] = failed[key] || fail
		if !fail {
			seen[key] = append(seen[key], n)
		}
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		under[key]--
		mu.Unlock()
		if fail {
			rw.WriteHeader(500)
		}
	}))
	t.Cleanup(srv.Close)
	_, err := w.store.Create(t.Context(), "ana", Settings{URL: srv.URL, Ordered: true})
	w.must(err)
	s, _ := w.run(quick)
	const keys, each = 5, 6
	var events []Event
	for n := range each {
		for k := range keys {
			key := fmt.Sprint("k", k)
			events = append(events, Event{ID: event.NewID(), Tenant: "ana", Type: "a", Key: key, Body: fmt.Appendf(nil, "%s/%d", key, n)})
		}
	}
	w.fan(events...)
	w.until("all", func() bool {
		w.hasten(s)
		return w.count(`SELECT count(*) FROM webhook.deliveries WHERE state = 'delivered'`) == keys*each
	})
	mu.Lock()
	defer mu.Unlock()
	for k, got := range seen {
		if strings.Join(got, " ") != "0 1 2 3 4 5" {
			t.Errorf("%s: %v", k, got)
		}
	}
}

func TestPingIsSentWhateverTheFilter(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 204)
	e := w.create("ana", r.URL, "orders.>")
	w.run(quick)
	id, err := w.store.Ping(t.Context(), "ana", e.ID)
	w.must(err)
	w.until("it is delivered", func() bool { return w.delivery(e, id).State == Delivered })
	if got := r.got(); !strings.Contains(got[0].body, PingType) {
		t.Errorf("%s", got[0].body)
	}
}

func TestSecretsAndBodiesAndURLsAreNotLogged(t *testing.T) {
	w := newWorld(t)
	e := w.create("ana", "http://127.0.0.1:1/path-secret?token=query-secret")
	cfg := quick
	cfg.DisableAfter = time.Millisecond
	s, stop := w.run(cfg)
	ev := anEvent("ana", "a")
	ev.Body = []byte("body-secret")
	w.fan(ev)
	w.until("it is disabled", func() bool {
		w.hasten(s)
		got, err := w.store.Get(t.Context(), "ana", e.ID)
		return err == nil && got.State == Disabled
	})
	d := w.delivery(e, ev.ID)
	stop()
	text := w.logs.String() + fmt.Sprintf("%+v", d)
	for _, secret := range []string{"path-secret", "query-secret", "body-secret", w.key(e)} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is told: %s", secret, text)
		}
	}
	if !strings.Contains(text, "disabled") {
		t.Errorf("nothing is logged: %s", text)
	}
}

// A sender that is killed between a call and its note calls again, by the same id.
func TestWhatWasNotNotedIsSentAgainByAnother(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	e := w.create("ana", r.URL)
	ev := anEvent("ana", "a")
	w.fan(ev)
	// One that has the endpoint, called it, and died: what is left is its lease.
	dead := NewSender(w.store, quick)
	dead.calling = t.Context()
	w.must(dead.beat(t.Context()))
	w.must(dead.discover(t.Context(), true))
	if len(dead.lanes) != 1 {
		t.Fatalf("%d lanes", len(dead.lanes))
	}
	for _, l := range dead.lanes {
		dead.call(&job{lane: l, id: ev.ID, body: ev.Body, contentType: "application/json"}, l.target)
	}
	dead.client.CloseIdleConnections()
	w.must(asOperator(t.Context(), w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE webhook.senders SET until = now() + interval '300 ms'`)
		return err
	}))
	w.run(quick)
	w.until("another delivers", func() bool { return w.delivery(e, ev.ID).State == Delivered })
	if got := r.got(); len(got) != 2 || r.distinct() != 1 {
		t.Errorf("%d calls of %d events", len(got), r.distinct())
	}
}

func TestSendersShareEndpointsAndSendOnce(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	const tenants, each = 12, 10
	for i := range tenants {
		w.create(fmt.Sprint("tenant ", i), r.URL)
	}
	for range 3 {
		w.run(quick)
	}
	w.until("all live", func() bool { return w.count(`SELECT count(*) FROM webhook.senders`) == 3 })
	sent := 0
	fan := func() {
		var events []Event
		for i := range tenants {
			events = append(events, anEvent(fmt.Sprint("tenant ", i), "a"))
		}
		w.fan(events...)
		sent += len(events)
	}
	for range each {
		fan()
	}
	w.until("each has a share", func() bool {
		fan()
		return w.count(`SELECT count(*) FROM (SELECT owner FROM webhook.lanes WHERE owner IS NOT NULL GROUP BY owner HAVING count(*) BETWEEN 2 AND 5) o`) == 3
	})
	w.until("all", func() bool {
		return w.count(`SELECT count(*) FROM webhook.deliveries WHERE state = 'delivered'`) == sent
	})
	if got := len(r.got()); got != sent || r.distinct() != sent {
		t.Errorf("%d calls of %d events, want each of %d once", got, r.distinct(), sent)
	}
}

// What a sender knows of an endpoint is in the database, also where no call is to
// be noted any more.
func TestAnEndpointThatWasMendedIsSaidToBeWell(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 400)
	e := w.create("ana", r.URL)
	cfg := quick
	cfg.Window = time.Millisecond // it is given up at once
	w.run(cfg)
	w.fan(anEvent("ana", "a"))
	health := func(failing bool) func() bool {
		return func() bool {
			got, err := w.store.Get(t.Context(), "ana", e.ID)
			return err == nil && (got.FailingSince != nil) == failing && (got.Failures > 0) == failing
		}
	}
	w.until("it is said to fail", health(true))
	_, err := w.store.Update(t.Context(), "ana", e.ID, Settings{URL: r.URL + "/other"})
	w.must(err)
	w.until("it is said to be well", health(false))
}
