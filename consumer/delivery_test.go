package consumer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// deliveries is a handler without a transaction that counts.
type deliveries struct {
	mu    sync.Mutex
	calls map[moved]int
	fail  func(event.Of[moved]) error
}

func (d *deliveries) handle(_ context.Context, e event.Of[moved]) error {
	d.mu.Lock()
	if d.calls == nil {
		d.calls = map[moved]int{}
	}
	d.calls[e.Data]++
	fail := d.fail
	d.mu.Unlock()
	if fail != nil {
		return fail(e)
	}
	return nil
}

func (d *deliveries) register(s *setup) {
	s.handlers = func(g *Group, c *event.Contract) { onEvent(g, c, d.handle) }
}

func (d *deliveries) at(m moved) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[m]
}

func TestAtLeastOnceParksWhatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	d := &deliveries{}
	bad := errors.New("by hand")
	d.fail = func(e event.Of[moved]) error {
		if e.Data == (moved{"a", 2}) {
			return bad
		}
		return nil
	}
	w.start(nil, d.register, func(s *setup) { s.cfg.Delivery = AtLeastOnce })
	w.move("a", "a", "a", "b", "b")
	w.until("the others flow, its key waits", func() bool {
		k := w.parked()
		return d.at(moved{"b", 2}) == 1 && len(k) == 1 && k[0].Behind == 1
	})
	if d.at(moved{"a", 3}) != 0 {
		t.Error("an event overtook the one before it")
	}
	d.mu.Lock()
	d.fail = nil
	d.mu.Unlock()
	w.until("it is handled, and the key free", func() bool { return d.at(moved{"a", 3}) == 1 && len(w.parked()) == 0 })
	w.until("the position follows", func() bool { return w.next() == 5 })
	if n := w.number(`SELECT count(*) FROM waybill.inbox`); n != 0 {
		t.Errorf("%d claims: there is no inbox", n)
	}
}

func TestAtMostOnceRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	d := &deliveries{}
	begun := make(chan struct{})
	d.fail = func(e event.Of[moved]) error {
		switch e.Data {
		case moved{"a", 1}:
			return errors.New("by hand")
		case moved{"a", 2}:
			if w.next() <= e.Offset {
				t.Errorf("position %d when the record at %d is handled", w.next(), e.Offset)
			}
			close(begun)
			<-time.After(5 * time.Second) // longer than it is waited for
		}
		return nil
	}
	once := func(s *setup) {
		s.cfg.Delivery = AtMostOnce
		s.cfg.Drain = 50 * time.Millisecond
		s.cfg.Metrics = w.metrics
	}
	w.move("a", "b", "a", "b")
	m := w.start(nil, d.register, once)
	<-begun
	m.stop()
	w.start(nil, d.register, once)
	w.move("c", "c")
	w.until("the next member goes on", func() bool { return d.at(moved{"c", 2}) == 1 })
	d.mu.Lock()
	for e, n := range d.calls {
		if n != 1 {
			t.Errorf("%v was handled %d times", e, n)
		}
	}
	d.mu.Unlock()
	if len(w.parked()) > 0 {
		t.Error("an event was parked")
	}
}

// prepare may take its time: it takes no connection to the database from
// anybody.
func TestWhatIsPreparedHoldsNoConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	const workers = 4
	all, n := make(chan struct{}), 0
	var mu sync.Mutex
	tries := map[moved]int{}
	w.start(nil, func(s *setup) {
		s.conns, s.cfg.Workers = 1, workers
		s.handlers = func(g *Group, c *event.Contract) {
			onPrepared(g, c, func(ctx context.Context, e event.Of[moved]) (string, error) {
				mu.Lock()
				tries[e.Data]++
				try := tries[e.Data]
				if n++; n == workers {
					close(all)
				}
				mu.Unlock()
				select {
				case <-all:
				case <-ctx.Done():
					return "", ctx.Err()
				}
				if try == 1 {
					return "", errors.New("the first answer is a failure")
				}
				return "for " + e.Data.Account + " of " + event.Tenant(ctx), nil
			}, func(ctx context.Context, tx pgx.Tx, e event.Of[moved], p string) error {
				if p != "for "+e.Data.Account+" of "+e.Tenant {
					return errors.New("prepared was " + p)
				}
				return keep(ctx, tx, e)
			})
		}
	})
	w.move("a", "b", "c", "d", "a", "b")
	w.settled()
}
