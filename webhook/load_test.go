package webhook

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkSend measures deliveries of small events to receivers on this machine:
// how many a second a backlog is sent at, and the time from commit to receipt at
// a steady pace, beside an endpoint that never answers and without.
//
//	go test -run xxx -bench Send -benchtime 1x ./webhook
func BenchmarkSend(b *testing.B) {
	for _, tenants := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("backlog/tenants=%d", tenants), func(b *testing.B) { backlog(b, tenants, 20_000) })
	}
	for _, stalled := range []bool{false, true} {
		b.Run(fmt.Sprintf("paced/stalled=%t", stalled), func(b *testing.B) { paced(b, stalled) })
	}
}

func backlog(b *testing.B, tenants, n int) {
	w := newWorld(b)
	var got atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got.Add(1)
	}))
	b.Cleanup(srv.Close)
	for i := range tenants {
		w.create(fmt.Sprint("tenant ", i), srv.URL)
	}
	for range b.N {
		got.Store(0)
		for from := 0; from < n; from += 1000 {
			var events []Event
			for i := range 1000 {
				events = append(events, anEvent(fmt.Sprint("tenant ", (from+i)%tenants), "orders.created"))
			}
			w.fan(events...)
		}
		began := time.Now()
		_, stop := w.run(Config{})
		w.until("all sent", func() bool { return got.Load() >= int64(n) })
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "sent/s")
		w.until("all noted", func() bool { return w.count(`SELECT count(*) FROM webhook.due`) == 0 })
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "noted/s")
		b.ReportMetric(float64(got.Load()-int64(n)), "duplicates")
		stop()
	}
}

// paced sends 500 events a second to fifty tenants for a while, and as many to
// one more, whose endpoint may be stalled.
func paced(b *testing.B, stalled bool) {
	w := newWorld(b)
	var mu sync.Mutex
	began, took := map[string]time.Time{}, []time.Duration(nil)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if at, ok := began[r.Header.Get("Webhook-Id")]; ok {
			took = append(took, now.Sub(at))
		}
	}))
	b.Cleanup(srv.Close)
	end := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	b.Cleanup(slow.Close)
	b.Cleanup(func() { close(end) })
	const tenants, perTick, ticks = 50, 10, 500
	for i := range tenants {
		w.create(fmt.Sprint("tenant ", i), srv.URL)
	}
	if stalled { // the same work, but for the answer
		w.create("other", slow.URL)
	} else {
		w.create("other", srv.URL)
	}
	s, _ := w.run(Config{Timeout: 2 * time.Second})
	for range b.N {
		tick := time.NewTicker(20 * time.Millisecond)
		for n := range ticks {
			<-tick.C
			var events []Event
			for i := range perTick {
				events = append(events, anEvent(fmt.Sprint("tenant ", (n*perTick+i)%tenants), "orders.created"))
			}
			mu.Lock()
			for _, e := range events {
				began[e.ID.String()] = time.Now()
			}
			mu.Unlock()
			for range perTick {
				events = append(events, anEvent("other", "orders.created"))
			}
			w.fan(events...)
			s.Wake()
		}
		tick.Stop()
		w.until("all sent", func() bool { mu.Lock(); defer mu.Unlock(); return len(took) >= ticks*perTick })
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
}
