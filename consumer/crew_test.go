package consumer

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// gauge counts handlers that run, and holds them until they are let go.
type gauge struct {
	mu      sync.Mutex
	running int
	let     chan struct{}
}

func (g *gauge) handle(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
	g.count(1)
	defer g.count(-1)
	select {
	case <-g.let:
	case <-ctx.Done():
		return ctx.Err()
	}
	return keep(ctx, tx, e)
}

func (g *gauge) count(n int) {
	g.mu.Lock()
	g.running += n
	g.mu.Unlock()
}

func (g *gauge) now() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

func TestWorkersGrowAndShrinkWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	g := &gauge{let: make(chan struct{})}
	m := w.start(g.handle, func(s *setup) { s.cfg.Workers, s.cfg.MaxBatch, s.cfg.Metrics = 1, 1, w.metrics })
	for i := range 60 {
		w.move(fmt.Sprint("k", i))
	}
	w.until("one works", func() bool { return g.now() == 1 })
	m.group.SetWorkers(5)
	w.until("five work", func() bool { return g.now() == 5 })
	w.until("five are shown", w.shows(5, 5))
	m.group.SetWorkers(2)
	w.until("two are meant, five at work yet", w.shows(5, 2))
	for range 10 { // those that are too many finish, and nobody takes their place
		g.let <- struct{}{}
	}
	w.until("two work", func() bool { return g.now() == 2 })
	w.until("two are shown", w.shows(2, 2))
	m.group.SetWorkers(0)
	g.let <- struct{}{}
	w.until("one works again", func() bool { return g.now() == 1 })
	close(g.let)
	w.settled()
}

// shows tells whether metrics say so many workers, and so many to be.
func (w *world) shows(workers, target float64) func() bool {
	return func() bool {
		return w.gauge("waybill_consumer_workers") == workers && w.gauge("waybill_consumer_workers_target") == target
	}
}
