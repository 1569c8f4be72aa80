package consumer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func ordered(o Ordering) func(*setup) { return func(s *setup) { s.cfg.Ordering = o } }

// numbered publishes n events of many keys that are numbered throughout.
func (w *world) numbered(n int) {
	w.t.Helper()
	for i := range n {
		w.publish(w.recordOf(moved{fmt.Sprint("k", i%7), int64(i)}))
	}
}

func (w *world) numbers() []int64 {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT n FROM effect ORDER BY serial`)
	if err != nil {
		w.t.Fatal(err)
	}
	ns, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		w.t.Fatal(err)
	}
	return ns
}

func TestByPartitionNothingOvertakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	bad := troubleWith(moved{"k2", 30})
	w.start(bad.keep, ordered(ByPartition))
	w.numbered(60)
	w.until("it stops at the event that fails", func() bool { return w.number(`SELECT count(*) FROM effect`) == 30 })
	w.until("its position is saved", func() bool { return w.next() == 30 })
	bad.mend()
	w.until("it goes on", func() bool { return w.number(`SELECT count(*) FROM effect`) == 60 })
	if ns := w.numbers(); !slices.IsSorted(ns) {
		t.Errorf("order: %v", ns)
	}
	if n := w.number(`SELECT last_value FROM waybill.parked_seq_seq`); n != 1 || len(w.parked()) > 0 {
		t.Error("events were parked")
	}
}

// A group that kept the order of keys before has parked some of them.
func TestByPartitionWaitsForWhatIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	bad := troubleWith(moved{"a", 1})
	m := w.start(bad.keep)
	w.move("a", "a", "b")
	w.until("parked", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 2 && w.next() == 3 })
	m.end(t)
	w.start(bad.keep, ordered(ByPartition))
	w.move("a", "b")
	w.until("it was tried again", func() bool { return w.parked()[0].Attempts > 3 })
	if n := w.number(`SELECT count(*) FROM effect`); n != 1 {
		t.Errorf("%d effects while an event of the partition is parked", n)
	}
	bad.mend()
	w.settled()
}

func TestUnorderedAnEventThatFailsIsParkedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	bad := troubleWith(moved{"a", 1}, moved{"a", 4})
	w.start(bad.keep, ordered(Unordered))
	for range 20 {
		w.move("a", "b")
	}
	w.until("the others of its key flow", func() bool {
		return w.number(`SELECT count(*) FROM effect`) == 38 && w.number(`SELECT count(*) FROM waybill.parked`) == 2
	})
	bad.mend()
	w.until("all are handled", func() bool {
		return w.number(`SELECT count(*) FROM effect`) == 40 && len(w.parked()) == 0
	})
}

func TestAnOrderingThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	m := w.start(keep, ordered(7))
	<-m.done
	if m.err == nil {
		t.Error("it was taken")
	}
	m.err = nil
}

func TestHandlersMustFitTheDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for d, direct := range map[Delivery]bool{Once: true, AtLeastOnce: false, AtMostOnce: false} {
		m := w.start(keep, func(s *setup) {
			s.cfg.Delivery = d
			if direct {
				direct := &deliveries{}
				direct.register(s)
			}
		})
		select {
		case <-m.done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: it runs", d)
		}
		if m.err == nil {
			t.Errorf("%s: no error", d)
		}
		t.Log(m.err)
		m.err = nil
	}
}
