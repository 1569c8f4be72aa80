package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// handful has a worker with a message at work that ends with its context or the
// channel, and n others in its hand.
func (w *world) handful(q *Queue, n int) (done chan struct{}, stop func()) {
	w.t.Helper()
	begun, done := make(chan struct{}, 1), make(chan struct{})
	worker, err := newWorker(w.t.Context(), q, func(ctx context.Context, _ pgx.Tx, m Delivery) error {
		if string(m.Body) != "slow" {
			return nil
		}
		begun <- struct{}{}
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, WorkerConfig{Workers: 1, Logger: quiet, Drain: 100 * time.Millisecond})
	if err != nil {
		w.t.Fatal(err)
	}
	worker.hand.pace = time.Millisecond // so far they were quick
	ctx, cancel := contextOf(w.t)
	ended := make(chan struct{})
	go func() { defer close(ended); worker.run(ctx) }()
	stop = func() { cancel(); <-ended }
	w.t.Cleanup(stop)
	w.send(q, text("slow")...)
	<-begun
	w.send(q, numbered(n)...)
	w.until("all are leased", func() bool { return w.stats(q).Ready == 0 })
	return done, stop
}

// What a worker has in hand behind a message that takes long, or for ever, does
// not wait for it while others have time.
func TestMessagesBehindASlowOneGoToWhoHasTime(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	done, _ := w.handful(q, 10)
	var others atomic.Int64
	w.run(New(w.db, Config{Name: "mail"}), func(_ context.Context, _ pgx.Tx, m Delivery) error {
		others.Add(1)
		if m.Deliveries != 1 {
			return fmt.Errorf("delivery %d of a message that nobody worked on", m.Deliveries)
		}
		return nil
	}, WorkerConfig{Workers: 1, Logger: quiet})
	w.until("another has done the rest", func() bool { return others.Load() >= 10 })
	close(done)
	w.until("all is done", func() bool { s := w.stats(q); return s.Ready+s.InFlight+s.Delayed == 0 })
	if n := others.Load(); n != 10 {
		t.Errorf("the other had %d, want 10", n)
	}
}

func TestAWorkerThatStopsGivesBackWhatIsInItsHand(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	_, stop := w.handful(q, 10)
	stop()
	if s := w.stats(q); s.Ready != 11 || s.InFlight != 0 || s.Redelivered != 0 {
		t.Errorf("%+v, want 11 ready and none redelivered", s)
	}
}
