package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// Groups that share places come to their ends, and no more of their transactions
// are under way at once than there are places.
func TestGroupsShareTheirPlaces(t *testing.T) {
	t.Parallel()
	for places, most := range map[int]int32{1: 1, 2: 2, 0: 1} {
		w := newWorld(t, 4)
		shared := NewPlaces(places)
		shared.wait = time.Hour // on a slow machine, too, nobody goes without a place
		var inside, peak, others atomic.Int32
		within := func(h Handler[moved]) Handler[moved] {
			return func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
				peak.Store(max(peak.Load(), inside.Add(1)))
				defer inside.Add(-1)
				return h(ctx, tx, e)
			}
		}
		w.start(within(keep), func(s *setup) { s.cfg.Places = shared })
		w.start(within(func(context.Context, pgx.Tx, event.Of[moved]) error { others.Add(1); return nil }), func(s *setup) {
			s.cfg.Places, s.cfg.Group = shared, w.group+"-other"
		})
		w.many(300, 60)
		w.settled()
		w.until("the other group comes to its end", func() bool { return others.Load() >= 300 })
		if peak.Load() > most {
			t.Errorf("%d handlers at once in %d places", peak.Load(), places)
		}
	}
}

// A handler that waits for something else holds up its own group only.
func TestWhoHoldsAPlaceForLongHoldsUpNoOtherGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	shared := NewPlaces(1)
	inside, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(done) }))
	var once sync.Once
	slow := w.start(func(ctx context.Context, _ pgx.Tx, _ event.Of[moved]) error {
		once.Do(func() { close(inside) })
		select {
		case <-done:
		case <-ctx.Done():
		}
		return ctx.Err()
	}, func(s *setup) {
		s.cfg.Places, s.cfg.Group, s.cfg.Timeout, s.cfg.Drain = shared, w.group+"-slow", 5*time.Minute, 1
	})
	w.move("a")
	<-inside
	w.start(keep, func(s *setup) { s.cfg.Places = shared })
	w.settled()
	slow.end(t)
}

// A member that waits for a place is taken down in order.
func TestWhoWaitsForAPlaceCanLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	shared := NewPlaces(1)
	give, err := shared.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := w.start(keep, func(s *setup) { s.cfg.Places, s.cfg.Drain = shared, 1 })
	w.move("a")
	w.until("it waits", func() bool { return m.inFlight() == 1 })
	m.end(t)
	give()
	w.start(keep, func(s *setup) { s.cfg.Places = shared })
	w.settled()
}

func (m *member) inFlight() int {
	s := m.group.running.Load()
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight
}
