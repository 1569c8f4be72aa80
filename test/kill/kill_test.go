// Package kill takes the whole program down with kill -9 while orders are
// placed, again and again, and then holds the log and the read model against
// the tables.
package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/test/proc"
)

// kills is how often: few in `make test`, more by `make test-kill`.
func kills(t *testing.T) int {
	v := os.Getenv("WAYBILL_TEST_KILLS")
	if v == "" {
		return 10
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("WAYBILL_TEST_KILLS=%q: want a number", v)
	}
	return n
}

func TestKillsLoseNothingAndDoNothingTwice(t *testing.T) {
	w := proc.Up(t)
	n := kills(t)
	fixed := *w // its addresses outlive restarts, which write to w
	shop := &shop{w: &fixed}
	ctx, stop := context.WithCancel(t.Context())
	var customers sync.WaitGroup
	for i := range 8 {
		customers.Go(func() { shop.trade(ctx, rand.New(rand.NewPCG(uint64(i), 42))) })
	}
	r := rand.New(rand.NewPCG(7, uint64(n)))
	for i := range n {
		shop.await(t, 1+r.IntN(40))
		// Any moment: between commit and publication, publication and mark,
		// effect and watermark, in the middle of a start.
		pause(t.Context(), time.Duration(r.IntN(400))*time.Millisecond)
		w.Kill()
		if i%10 == 9 {
			t.Logf("killed %d times, %d orders answered", i+1, shop.count())
		}
		if r.IntN(5) == 0 { // kill a start, too
			killDuringStart(t, w, r)
		}
		w.Start()
	}
	shop.await(t, 20)
	stop()
	customers.Wait()

	book := open(t, w)
	book.settle()
	book.checkAnswered(shop.answered())
	book.checkLog()
	book.checkReadModel()
	book.checkInbox()
	if err := w.Stop(); err != nil {
		t.Errorf("stop: %v\n%s", err, w.Output())
	}
}

// killDuringStart starts the program and kills it, ready or not.
func killDuringStart(t *testing.T, w *proc.Waybill, r *rand.Rand) {
	t.Helper()
	if err := w.Launch(); err != nil {
		t.Fatal(err)
	}
	pause(t.Context(), time.Duration(50+r.IntN(700))*time.Millisecond)
	w.Kill()
}

// shop places orders and moves them on. It repeats what was not answered under
// the same idempotency key until it is.
type shop struct {
	w *proc.Waybill

	mu     sync.Mutex
	orders map[string]int64 // highest version that was answered
}

type order struct {
	ID      string   `json:"id"`
	Version int64    `json:"version"`
	Allowed []string `json:"allowed"`
}

func (s *shop) trade(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		o, ok := s.do(ctx, "/v1/orders", proc.Order, http.StatusCreated)
		if ok && r.IntN(2) == 0 {
			o, ok = s.assign(ctx, o)
		}
		for ok && len(o.Allowed) > 0 && r.IntN(3) > 0 {
			to := o.Allowed[r.IntN(len(o.Allowed))]
			body := fmt.Sprintf(`{"to":%q,"expected_version":%d}`, to, o.Version)
			if o, ok = s.do(ctx, "/v1/orders/"+o.ID+"/transitions", body, http.StatusOK); !ok {
				break // it was done before the answer was lost: another order
			}
		}
	}
}

// assign moves an order to where a merchant moves it on. What was committed
// before its answer was lost is in the table, as all that others wrote.
func (s *shop) assign(ctx context.Context, o order) (order, bool) {
	version, err := s.w.AsSystem(ctx, o.ID, proc.Search...)
	if err != nil {
		return o, false
	}
	o.Version, o.Allowed = version, []string{"PICKUP_ONGOING", "CANCELLED"}
	s.note(o)
	return o, true
}

// do posts until there is an answer. It is false where the answer is that it
// cannot be, as for a transition that took place before its answer was lost.
func (s *shop) do(ctx context.Context, path, body string, want int) (o order, ok bool) {
	key := uuid.NewString()
	for ctx.Err() == nil {
		status, b, err := s.w.Request(ctx, http.MethodPost, path, body, "Idempotency-Key", key)
		switch {
		case err == nil && (status == want || status == http.StatusOK):
			if json.Unmarshal(b, &o) != nil {
				return o, false
			}
			s.note(o)
			return o, true
		case err == nil && status == http.StatusConflict:
			return o, false
		}
		pause(ctx, 20*time.Millisecond)
	}
	return o, false
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (s *shop) note(o order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders == nil {
		s.orders = map[string]int64{}
	}
	s.orders[o.ID] = max(s.orders[o.ID], o.Version)
}

func (s *shop) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.orders)
}

func (s *shop) answered() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders
}

// await waits until n more orders were answered.
func (s *shop) await(t *testing.T, n int) {
	t.Helper()
	goal := s.count() + n
	deadline := time.Now().Add(3 * time.Minute)
	for s.count() < goal {
		if time.Now().After(deadline) {
			t.Fatalf("no %d orders answered within three minutes\n%s", n, s.w.Output())
		}
		pause(t.Context(), 5*time.Millisecond)
	}
}
