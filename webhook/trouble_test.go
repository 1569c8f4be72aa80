package webhook

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// stalled is a server that takes requests and never answers.
func stalled(t *testing.T) (url string, most func() int) {
	var mu sync.Mutex
	end, under, peak := make(chan struct{}), 0, 0
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		under++
		peak = max(peak, under)
		mu.Unlock()
		select {
		case <-end:
		case <-r.Context().Done():
		}
		mu.Lock()
		under--
		mu.Unlock()
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(end) })
	return srv.URL, func() int { mu.Lock(); defer mu.Unlock(); return peak }
}

// Forty endpoints that never answer and a hundred tenants who are sent to beside
// them: nothing of theirs waits for a call to time out.
func TestEndpointsThatStallHoldUpNobody(t *testing.T) {
	w := newWorld(t)
	url, peak := stalled(t)
	r := newReceiver(t, 200)
	var events []Event
	for i := range 40 {
		tenant := fmt.Sprint("stalled ", i)
		w.create(tenant, url)
		for range 20 {
			events = append(events, anEvent(tenant, "a"))
		}
	}
	const tenants, each = 100, 10
	for i := range tenants {
		tenant := fmt.Sprint("well ", i)
		w.create(tenant, r.URL)
		for range each {
			events = append(events, anEvent(tenant, "a"))
		}
	}
	w.fan(events...)
	cfg := quick
	cfg.Timeout, cfg.MaxInFlight = time.Hour, 128 // what is stalled stays so
	cfg.Drain = time.Millisecond
	w.run(cfg)
	w.until("the others get theirs", func() bool { return r.distinct() == tenants*each })
	if n := peak(); n > 64 {
		t.Errorf("%d calls of stalled endpoints, of 128 in all", n)
	}
}

// An endpoint that failed is not trusted by the next sender.
func TestABreakerOutlivesItsSender(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 503)
	r.answer(503, "Retry-After", "600")
	e := w.create("ana", r.URL)
	_, stop := w.run(quick)
	w.fan(anEvent("ana", "a"))
	w.until("it is noted", func() bool {
		got, err := w.store.Get(t.Context(), "ana", e.ID)
		return err == nil && got.OpenUntil != nil
	})
	stop()
	w.fan(anEvent("ana", "a"), anEvent("ana", "a"))
	next, _ := w.run(quick)
	w.until("another has it", func() bool {
		next.mu.Lock()
		defer next.mu.Unlock()
		return len(next.resting) == 1
	})
	w.must(w.store.Enable(t.Context(), "ana", e.ID)) // somebody says that it is mended
	r.answer(200)
	w.until("it is called again", func() bool { return r.distinct() == 3 })
}

// While the database refuses what came of calls, nothing is lost and little is
// begun; when it is back all is noted, once.
func TestResultsWaitForTheDatabase(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	e := w.create("ana", r.URL)
	reg := prometheus.NewRegistry()
	cfg := quick
	cfg.Metrics = reg
	w.run(cfg)
	lock, err := w.db.Begin(t.Context())
	w.must(err)
	_, err = lock.Exec(t.Context(), `ALTER TABLE webhook.deliveries ADD CONSTRAINT refuse CHECK (state <> 'delivered') NOT VALID`)
	w.must(err)
	w.must(lock.Commit(t.Context()))
	var events []Event
	for range 300 {
		events = append(events, anEvent("ana", "a"))
	}
	w.fan(events...)
	w.until("some are sent", func() bool { return r.distinct() > 0 })
	_, err = w.db.Exec(t.Context(), `ALTER TABLE webhook.deliveries DROP CONSTRAINT refuse`)
	w.must(err)
	w.until("all are noted", func() bool {
		return w.count(`SELECT count(*) FROM webhook.deliveries WHERE endpoint = $1 AND state = 'delivered'`, e.ID) == 300
	})
	if got := len(r.got()); got != 300 {
		t.Errorf("%d calls of 300 events", got)
	}
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
}

// What is handed over while senders run, one of which is stopped and begun anew,
// is sent, all of it.
func TestSendersMayComeAndGo(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	for i := range 5 {
		w.create(fmt.Sprint("tenant ", i), r.URL)
	}
	w.run(quick)
	sent := 0
	for range 5 {
		_, stop := w.run(quick)
		for range 10 {
			var events []Event
			for i := range 5 {
				events = append(events, anEvent(fmt.Sprint("tenant ", i), "a"))
			}
			w.fan(events...)
			sent += len(events)
		}
		stop()
	}
	w.until("all", func() bool { return w.count(`SELECT count(*) FROM webhook.due`) == 0 })
	if r.distinct() != sent || len(r.got()) != sent {
		t.Errorf("%d of %d events by %d calls", r.distinct(), sent, len(r.got()))
	}
}

// A lease that ended is not renewed: others may have seen that it did.
func TestALeaseThatEndedBeginsAnew(t *testing.T) {
	w := newWorld(t)
	s := NewSender(w.store, quick)
	s.log = w.logs.logger()
	w.must(s.beat(t.Context()))
	first := s.id
	w.must(asOperator(t.Context(), w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE webhook.senders SET until = now() - interval '1 s'`)
		return err
	}))
	w.must(s.beat(t.Context()))
	if s.id == first || !s.fence.IsZero() {
		t.Error("it goes on under a lease that was over")
	}
	w.must(s.beat(t.Context()))
	if s.fence.IsZero() {
		t.Error("it does not begin anew")
	}
}
