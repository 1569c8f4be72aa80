package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// counter is the sum of a metric's values.
func (w *world) counter(name string) (sum float64) {
	all, err := w.metrics.Gather()
	if err != nil {
		w.t.Error(err)
	}
	for _, f := range all {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

// usurp is what another member does that takes everything over.
func (w *world) usurp() {
	w.exec(`UPDATE waybill.owner SET epoch = epoch + 1, member = 'another' WHERE group_name = $1`, w.group)
}

// A member that was not told begins nothing any more. If the broker goes on
// counting it as the owner, it takes the partition over in its turn.
func TestAMemberThatWasTakenOverBeginsNothing(t *testing.T) {
	t.Parallel() // it waits for a session to end
	w := newWorld(t, 1)
	w.start(keep, func(s *setup) { s.cfg.Metrics = w.metrics; s.cfg.Drain = 50 * time.Millisecond })
	w.move("a", "b")
	w.settled()
	w.until("saved", func() bool { return w.next() == 2 })
	w.usurp()
	w.move("a", "b", "a")
	w.until("given up", func() bool { return w.counter("waybill_consumer_fenced_total") == 1 })
	if n, parked := w.number(`SELECT count(*) FROM effect`), w.parked(); n != 2 || len(parked) > 0 || w.next() != 2 {
		t.Errorf("%d effects, parked %v, position %d after it was taken over", n, parked, w.next())
	}
	w.settled()
	if n := w.number(`SELECT epoch FROM waybill.owner`); n < 3 {
		t.Errorf("epoch %d, want 3 at least", n)
	}
}

// A member without a word from the broker, in the middle of a transaction: the
// next owner waits for its end, and goes on behind it.
func TestTheNextOwnerWaitsForAnOpenTransaction(t *testing.T) {
	t.Parallel() // it waits for a session to end
	for _, commits := range []bool{true, false} {
		t.Run(fmt.Sprint(commits), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			v := &valve{}
			begun, finish := make(chan struct{}), make(chan struct{})
			var once atomic.Bool
			w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
				if !once.CompareAndSwap(false, true) {
					return errors.New("the member that was taken over began an event")
				}
				close(begun)
				<-finish
				if err := keep(ctx, tx, e); err != nil || commits {
					return err
				}
				return errors.New("by hand")
			}, func(s *setup) {
				s.cfg.Drain = time.Minute // its partition is not taken from it by its own hand
				s.opts = []kgo.Opt{kgo.Dialer(v.dial), kgo.SessionTimeout(6 * time.Second), kgo.RebalanceTimeout(6 * time.Second)}
			})
			w.move("a", "a")
			<-begun
			v.set(true)
			w.start(keep, func(s *setup) { s.cfg.Drain = 100 * time.Millisecond })
			w.until("the next owner waits for the claim", func() bool {
				return w.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
					AND wait_event_type = 'Lock' AND query LIKE '%waybill.inbox%'`) > 0
			})
			w.move("a", "b")
			if n := w.number(`SELECT count(*) FROM effect WHERE key = 'a'`); n != 0 {
				t.Errorf("%d events of the key were handled before the one that is open", n)
			}
			close(finish)
			w.settled()
		})
	}
}

// What a claim does not guard: positions and parked events of an owner that is
// one no more.
func TestNothingIsSavedOrParkedAfterATakeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	g := New(Deps{DB: w.db}, Config{Group: w.group, Logger: slog.New(slog.DiscardHandler)})
	cl := w.engine.Client(t)
	s := newSession(g, t.Context())
	s.cl = cl
	at := place{w.contract.Topic, 0}
	owner, err := s.takeOver(t.Context(), []place{at})
	if err != nil {
		t.Fatal(err)
	}
	p := newPartition(t.Context(), at, [16]byte{1}, owner[at], 0)
	c := w.contract
	on(g, &c, keep)
	m := g.read(w.record("a"))
	l := p.lane("a")
	write := func() (saved int, park, behind error) {
		ours, err := s.save(t.Context(), []position{{at, p.owner, p.topicID, -1, 5, 0}})
		if err != nil {
			t.Fatal(err)
		}
		return len(ours), s.park(t.Context(), p, m, failure{state: stateRetrying, err: errors.New("x")}), s.parkBehind(t.Context(), l, []*message{m})
	}
	if saved, park, behind := write(); saved != 1 || park != nil || behind != nil {
		t.Fatalf("as the owner: %d saved, %v, %v", saved, park, behind)
	}
	w.exec(`TRUNCATE waybill.parked, waybill.watermark`)
	w.usurp()
	if saved, park, behind := write(); saved != 0 || !errors.Is(park, errFenced) || !errors.Is(behind, errFenced) {
		t.Errorf("after it: %d saved, %v, %v", saved, park, behind)
	}
	if n := w.number(`SELECT (SELECT count(*) FROM waybill.parked) + (SELECT count(*) FROM waybill.watermark)`); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	again, err := s.takeOver(t.Context(), []place{at})
	if err != nil || again[at] != owner[at]+2 {
		t.Errorf("epoch %d, %v", again[at], err)
	}
}
