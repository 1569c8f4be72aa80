package sim

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 3 * time.Minute

// running is a simulation against a peer, as fast as it goes.
type running struct {
	*Sim
	t    *testing.T
	stop func() error
}

func (p *peer) run(cfg Config) *running {
	p.t.Helper()
	cfg.URL = p.URL
	if cfg.Speed == 0 {
		cfg.Speed = 600
	}
	cfg.Start = time.Date(2026, 5, 1, 12, 30, 0, 0, saoPaulo)
	cfg.Logger = slog.New(slog.DiscardHandler)
	s, err := New(p, cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	r := &running{Sim: s, t: p.t}
	stopped := false
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			p.t.Fatal("does not stop")
			return nil
		}
	}
	p.t.Cleanup(func() {
		if err := r.stop(); err != nil {
			p.t.Error(err)
		}
	})
	return r
}

// until waits for what must come.
func (r *running) until(what string, ok func(Stats) bool) Stats {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		st := r.Stats()
		if ok(st) {
			return st
		}
		select {
		case <-tick.C:
		case <-late:
			r.t.Fatalf("no %s: %+v", what, st)
		}
	}
}

func TestOrdersAreMadeRiddenAndDelivered(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	r := p.run(Config{Seed: 4, Merchants: 3, Couriers: 8, Rate: 1})
	r.until("deliveries", func(s Stats) bool { return s.Orders.Delivered >= 12 })
	r.until("pings held back and sent twice", func(s Stats) bool {
		_, late, again := p.pings()
		return late > 0 && again > 0 && s.Pings.Late > 0 && s.Pings.Again > 0
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	p.requireNoFault()
	st := r.Stats()
	if n := p.states()["DELIVERED"]; int64(n) < st.Orders.Delivered || st.Offers.Accepted < st.Orders.Delivered {
		t.Errorf("%d delivered at the peer, %+v", n, st)
	}
	seen, late, again := p.pings()
	if seen == 0 || late == 0 || again == 0 || int64(seen) < st.Pings.Sent {
		t.Errorf("%d pings, %d of them late and %d again; %+v", seen, late, again, st.Pings)
	}
	if st.Couriers.OnDuty != 0 || st.Couriers.Riding != 0 || st.Couriers.Km == 0 {
		t.Errorf("in the end %+v", st.Couriers)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, c := range p.couriers {
		if c.state == "AVAILABLE" {
			t.Errorf("%s is still on duty", k)
		}
	}
}

// Fates are the seed's: of its first orders some fail and some are cancelled.
func TestFailuresReturnsDeclinesAndCancellationsHappen(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	seed := uint64(1)
	for ; ; seed++ {
		fates, plan := map[fate]int{}, newPlan(p.city, seed, 4)
		for i := range 10 {
			fates[plan.order(i).fate]++
		}
		if fates[absent] >= 2 && fates[cancelled] >= 1 {
			break
		}
	}
	r := p.run(Config{Seed: seed, Merchants: 4, Couriers: 40, Rate: 12})
	r.until("returns, declines and cancellations", func(s Stats) bool {
		return s.Orders.Returned > 0 && s.Orders.Failed > 0 && s.Offers.Declined > 0 && s.Orders.Cancelled > 0
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	p.requireNoFault()
}

func TestACourierDropsAJobThatIsGone(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	r := p.run(Config{Seed: 4, Merchants: 1, Couriers: 1, Rate: 1, Speed: 60})
	r.until("a ride", func(s Stats) bool { return s.Offers.Accepted == 1 })
	p.mu.Lock()
	for _, o := range p.orders {
		if o.courier != "" {
			o.state = "CANCELLED"
			p.free(o)
		}
	}
	p.mu.Unlock()
	r.until("the next ride", func(s Stats) bool { return s.Offers.Accepted >= 2 })
	p.requireNoFault()
}

func TestItWaitsAsLongAsItIsAskedTo(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	var told, early atomic.Int64
	var until atomic.Int64
	p.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/orders" {
			return false
		}
		now := time.Now().UnixMilli()
		if told.Load() == 0 {
			until.Store(now + 1000)
		}
		if now < until.Load()-20 {
			if told.Add(1) > 4 { // each of the four askers once
				early.Add(1)
			}
			w.Header().Set("Retry-After", "1")
			problem(w, http.StatusTooManyRequests)
			return true
		}
		return false
	}
	r := p.run(Config{Seed: 1, Merchants: 2, Couriers: -1, Max: true, Workers: 4})
	st := r.until("orders", func(s Stats) bool { return s.Orders.Made >= 50 })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if early.Load() != 0 || st.Throttled == 0 || st.Throttled > 4 {
		t.Errorf("asked %d times too early, told %d times", early.Load(), st.Throttled)
	}
	p.requireNoFault()
}

// Nothing listens for a while; what was asked is asked again, once.
func TestItSurvivesTheAPIBeingAway(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	address := p.Listener.Addr().String()
	r := p.run(Config{Seed: 2, Merchants: 2, Couriers: 3, Rate: 1})
	r.until("orders", func(s Stats) bool { return s.Orders.Made >= 3 && s.Pings.Sent > 0 })
	p.CloseClientConnections()
	p.Close()
	r.until("errors", func(s Stats) bool { return s.Errors >= 3 })
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("the address was taken meanwhile: %v", err)
	}
	again := &httptest.Server{Listener: ln, Config: &http.Server{Handler: p.handler(), ReadHeaderTimeout: time.Minute}}
	again.Start()
	t.Cleanup(again.Close)
	before := r.Stats()
	r.until("orders and deliveries again", func(s Stats) bool {
		return s.Orders.Made > before.Orders.Made && s.Orders.Delivered > before.Orders.Delivered
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	p.requireNoFault()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := r.Stats().Orders.Made; int64(len(p.orders)) > n+int64(r.cfg.Workers) || int64(len(p.orders)) < n {
		t.Errorf("%d orders of which %d were answered", len(p.orders), n)
	}
}

func TestAKeyThatIsNotTakenEndsIt(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	s, err := New(Keys{Merchants: []string{"wrong"}}, Config{URL: p.URL, Merchants: 1, Couriers: -1, Max: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("%v", err)
	}
	s, err = New(Keys{Merchants: []string{"one"}}, Config{URL: p.URL, Merchants: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "give more") {
		t.Errorf("%v", err)
	}
}

func TestADurationEndsIt(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	var told atomic.Int64
	s, err := New(p, Config{
		URL: p.URL, Merchants: 1, Couriers: 2, Speed: 600, Duration: 300 * time.Millisecond,
		Progress: func(Stats) { told.Add(1) }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil || told.Load() == 0 {
		t.Errorf("%v, told %d times", err, told.Load())
	}
}

func TestWhatCannotBePlayedIsRefused(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no url":    {},
		"too fast":  {URL: "http://x", Speed: 601},
		"too slow":  {URL: "http://x", Speed: 0.5},
		"backwards": {URL: "http://x", Rate: -1},
	} {
		if _, err := New(Keys{}, cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestTheBookForgetsTheOldest(t *testing.T) {
	t.Parallel()
	b := newBook(100)
	for i := range 250 {
		b.put(fmt.Sprint(i), entry{})
		b.put(fmt.Sprint(i), entry{token: "again"})
	}
	if len(b.entries) != 100 || len(b.ring) != 100 {
		t.Errorf("%d remembered", len(b.entries))
	}
	for i := range 250 {
		if _, ok := b.get(fmt.Sprint(i)); ok != (i >= 150) {
			t.Fatalf("order %d is remembered: %v", i, ok)
		}
	}
}
