package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// shop answers as the API does, but what its stream tells is the test's.
type shop struct {
	mu     sync.Mutex
	orders int
	news   chan string
	tell   func(n int) (events []string) // of the n-th order, from 1
}

func event(order, n int) string {
	return fmt.Sprintf(`{"id":"e%d-%d","type":"t","subject":"o%d","sequence":%d}`, order, n, order, n)
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.stream(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders++
	for _, e := range s.tell(s.orders) {
		s.news <- e
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(order{ID: fmt.Sprintf("o%d", s.orders)})
}

func (s *shop) stream(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprint(w, "event: ready\ndata: {}\nid: 0\n\n")
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case e := <-s.news:
			_, _ = fmt.Fprintf(w, "event: x\ndata: %s\nid: 1\n\n", e)
		case <-r.Context().Done():
			return
		}
	}
}

// measure runs twenty orders.
func measure(t *testing.T, tell func(n int) []string) Result {
	t.Helper()
	s := &shop{news: make(chan string, 100), tell: tell}
	srv := httptest.NewServer(s)
	defer srv.Close()
	res, err := Run(t.Context(), Config{
		URL: srv.URL, Key: "k", Rate: 20, Duration: time.Second, Patience: 300 * time.Millisecond, // slow enough for a busy machine to keep step
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Orders != 20 || res.Failed != 0 {
		t.Fatalf("%+v", res)
	}
	return res
}

// An instrument that cannot show a fault proves nothing.
func TestFaultsOfTheStreamAreCounted(t *testing.T) {
	faultless := func(n int) []string { return []string{event(n, 1)} }
	// The fifth order of every ten has the fault: of the twentieth, the run would
	// not wait for what comes after its event.
	tenth := func(events ...int) func(int) []string {
		return func(n int) []string {
			if n%10 != 5 {
				return faultless(n)
			}
			var told []string
			for _, e := range events {
				told = append(told, event(n, e))
			}
			return told
		}
	}
	for name, c := range map[string]struct {
		tell                        func(n int) []string
		lost, reordered, duplicates int
		unfinished                  int
	}{
		"none": {tell: faultless},
		"lost": {tell: tenth(), lost: 2},
		"broker away": {tell: func(n int) []string { // from the eleventh on
			if n > 10 {
				return nil
			}
			return faultless(n)
		}, unfinished: 10},
		"duplicates": {tell: tenth(1, 1), duplicates: 2},
		"reordered":  {tell: tenth(2, 1), reordered: 4}, // neither is where it belongs
		"a gap":      {tell: tenth(1, 3), reordered: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := measure(t, c.tell)
			if got.Lost != c.lost || got.Reordered != c.reordered || got.Duplicates != c.duplicates || got.Unfinished != c.unfinished {
				t.Errorf("lost %d reordered %d duplicates %d unfinished %d, want %d %d %d %d", got.Lost, got.Reordered, got.Duplicates, got.Unfinished,
					c.lost, c.reordered, c.duplicates, c.unfinished)
			}
			if ratio := got.PerSecond / got.OrdersPerSecond; math.Abs(ratio-float64(got.Events)/float64(got.Orders)) > 1e-9 {
				t.Errorf("%d events and %.1f of them a second do not go together: %+v", got.Events, got.PerSecond, got)
			}
		})
	}
}

func TestRefusedOrdersAreFailuresAndNotLost(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			(&shop{}).stream(w, r)
			return
		}
		http.Error(w, "no room", http.StatusTooManyRequests)
	}))
	defer srv.Close()
	res, err := Run(t.Context(), Config{URL: srv.URL, Rate: 100, Duration: 50 * time.Millisecond})
	if err != nil || res.Failed != 5 || res.Orders != 0 || res.Lost != 0 || res.Failure == "" {
		t.Errorf("%+v %v", res, err)
	}
	if res.Mean != nil || res.P50 != nil || res.P99 != nil || res.AnswerP50 != nil || res.TrackedP50 != nil || res.PerSecond != 0 || res.OrdersPerSecond != 0 {
		t.Errorf("a figure of nothing: %+v", res)
	}
}

func TestWaitsCountFromWhenAnOrderWasDue(t *testing.T) {
	l := newLedger()
	due := time.Now()
	l.saw(message{ID: "e", Subject: "o", Sequence: 1, at: due.Add(30 * time.Millisecond)}) // before its answer
	l.answered("o", due, due.Add(20*time.Millisecond))
	r := l.result(Config{}, time.Second)
	if *r.Mean != 30 || *r.AnswerP50 != 20 || r.Lost != 0 {
		t.Errorf("%+v", r)
	}
}
