package consumer

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// trouble makes handlers fail for chosen events until it is mended.
type trouble struct {
	mu  sync.Mutex
	bad map[moved]bool
}

func troubleWith(bad ...moved) *trouble {
	tr := &trouble{bad: map[moved]bool{}}
	for _, m := range bad {
		tr.bad[m] = true
	}
	return tr
}

var errTrouble = errors.New("trouble \x00\xff with \"it\"")

func (tr *trouble) keep(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
	// The effect comes first: a failure has to undo it.
	if err := keep(ctx, tx, e); err != nil {
		return err
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.bad[e.Data] {
		return errTrouble
	}
	return nil
}

func (tr *trouble) mend() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	clear(tr.bad)
}

func (w *world) parked() []ParkedKey {
	w.t.Helper()
	keys, err := Parked(w.t.Context(), w.db, w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	return keys
}

func TestAFailingEventStopsItsOwnKeyOnly(t *testing.T) {
	t.Parallel()
	for _, bad := range []int64{1, 3, 5} { // poison first, in the middle and last
		w := newWorld(t, 1)
		tr := troubleWith(moved{"a", bad})
		w.start(tr.keep)
		for range 5 {
			w.move("a", "b", "c")
		}
		w.until("the others flow and the key is parked", func() bool {
			return w.number(`SELECT count(*) FROM effect`) == 10+bad-1 && w.number(`SELECT count(*) FROM waybill.parked`) == 5-bad+1
		})
		w.until("the partition moves on", func() bool { return w.next() == 15 })
		k := w.parked()
		if len(k) != 1 || k[0].Key != "a" || k[0].Behind != 5-bad || k[0].Error != "trouble �� with \"it\"" || k[0].Tenant != "tenant-of-a" {
			t.Errorf("parked keys: %+v", k)
		}
		tr.mend()
		w.settled()
		w.move("a", "a")
		w.settled()
	}
}

func TestAParkedKeyIsTriedLessAndLess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 1})
	w.start(tr.keep, func(s *setup) { s.cfg.Retry.ParkMax = 0 })
	w.move("a")
	w.until("it failed a few times", func() bool { k := w.parked(); return len(k) == 1 && k[0].Attempts >= 4 })
	k := w.parked()[0]
	if wait := time.Until(k.NextAt); wait > quickRetry.Park<<k.Attempts {
		t.Errorf("after %d attempts it waits %s more", k.Attempts, wait)
	}
	tr.mend()
	w.settled()
}

func TestAPanicIsAFailureOfItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var mended atomic.Bool
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.Account == "a" && e.Data.N == 2 && !mended.Load() {
			var m map[string]int
			m["x"] = 1 //nolint:staticcheck // meant to panic
		}
		return keep(ctx, tx, e)
	})
	w.move("a", "a", "b", "a", "b")
	w.until("parked", func() bool { k := w.parked(); return len(k) == 1 && k[0].Behind == 1 })
	mended.Store(true)
	w.settled()
}

// An event that cannot be read is as good as one that fails, and keeps its
// bytes for whoever looks.
func TestAnUnreadableEventIsParkedWithItsBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	cut, astray := w.recordOf(moved{"a", 99}), w.recordOf(moved{"b", 99})
	cut.Value = cut.Value[:1]
	for i := range astray.Headers {
		if astray.Headers[i].Key == event.HeaderTime {
			astray.Headers[i].Value = []byte("yesterday\x00")
		}
	}
	w.publish(cut, astray, &kgo.Record{
		Topic: w.contract.Topic, Key: []byte("t\x00\xff"), // a tombstone with a type
		Headers: []kgo.RecordHeader{{Key: event.HeaderType, Value: []byte(w.contract.Type)}, {Key: "x\x00\xfe", Value: nil}},
	})
	w.move("c")
	w.start(keep)
	w.until("three keys are parked", func() bool { return len(w.parked()) == 3 })
	w.until("the other has its effect", func() bool { return w.number(`SELECT count(*) FROM effect`) == 1 })
	var value []byte
	if err := w.db.QueryRow(t.Context(), `SELECT value FROM waybill.parked WHERE key = 'a'`).Scan(&value); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(value, cut.Value) {
		t.Errorf("value %x, want %x", value, cut.Value)
	}
	if n := w.number(`SELECT count(*) FROM waybill.parked WHERE key = '\x7400ff' AND value IS NULL AND header_names[2] = '\x7800fe'`); n != 1 {
		t.Error("the tombstone lost its key or headers")
	}
}

func TestParkedKeysOutliveTheMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	tr := troubleWith(moved{"a", 2}, moved{"b", 1})
	m := w.start(tr.keep)
	w.move("a", "b", "a", "a", "b")
	w.until("both parked", func() bool { k := w.parked(); return len(k) == 2 && k[0].Behind+k[1].Behind == 2 })
	m.end(t)
	w.move("a", "b", "c")
	w.start(tr.keep)
	w.until("later events wait too", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 6 })
	w.move("a")
	tr.mend()
	w.move("a", "b")
	w.settled()
}

// While a long queue drains, what comes in must neither overtake it nor stop
// it.
func TestNothingOvertakesAKeyThatDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 1})
	w.start(tr.keep)
	for range 100 {
		w.move("a")
	}
	w.until("all parked", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 100 })
	tr.mend()
	for range 200 {
		w.move("a", "b")
	}
	w.settled()
}

// Records parked before the position was saved come again.
func TestRedeliveryOfParkedEventsParksNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 2})
	m := w.start(tr.keep)
	w.move("a", "a", "a", "b")
	w.until("parked", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 2 })
	m.end(t)
	w.exec(`DELETE FROM waybill.watermark`)
	w.start(tr.keep)
	w.until("read again", func() bool { return w.next() == 4 })
	tr.mend()
	w.settled()
}

// A lane that waits for its next try holds no worker.
func TestRetriesInPlaceDoNotHoldWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 1}, moved{"b", 1}, moved{"c", 1})
	w.start(tr.keep, func(s *setup) {
		s.cfg.Workers = 1
		s.cfg.Retry = Retry{Attempts: 2, Pause: time.Minute, Within: time.Hour}
	})
	w.move("a", "b", "c", "d", "e")
	w.until("the others flow", func() bool { return w.number(`SELECT count(*) FROM effect`) == 2 })
}

func TestAParkedEventWhoseHandlerIsGoneIsDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	f := &failing{errs: map[string]error{"a": errBusy}}
	m := w.start(f.keep)
	w.move("a", "a", "b")
	w.until("they are parked", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 2 && w.effects("b") == 1 })
	m.end(t)
	m = w.start(nil, func(s *setup) {
		s.handlers = func(g *Group, c *event.Contract) {
			OnAny(g, c.Topic, Filter{Types: []string{"other.>"}}, func(context.Context, pgx.Tx, Raw) error { return nil })
		}
	})
	if k := w.untilDead(1)[0]; k.Class != "no handler" || k.Behind != 1 {
		t.Errorf("%+v", k)
	}
	m.end(t)
	if _, err := Redrive(t.Context(), w.db, DeadFilter{Group: w.group}, Ask{By: "test"}); err != nil {
		t.Fatal(err)
	}
	w.start(keep)
	w.settled()
}

// A retry that failed has not freed the key.
func TestNothingOvertakesAKeyWhoseRetryFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 1})
	w.start(tr.keep)
	w.move("a")
	for n := range 4 {
		w.until("a retry failed", func() bool { k := w.parked(); return len(k) == 1 && k[0].Attempts >= n+2 })
		w.move("a", "b")
		w.until("the partition moves on", func() bool { return w.next() == int64(3+2*n) })
	}
	if n := w.number(`SELECT count(*) FROM effect WHERE key = 'a'`); n != 0 {
		t.Errorf("%d events overtook", n)
	}
	tr.mend()
	w.settled()
}

// FailNow and its like end the goroutine of who calls them.
func TestAHandlerThatEndsItsGoroutineFailsItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var mended atomic.Bool
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.Account == "a" && !mended.Load() {
			runtime.Goexit()
		}
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.Workers = 1 })
	w.move("a", "b")
	w.until("the other flows", func() bool { return w.number(`SELECT count(*) FROM effect`) == 1 && len(w.parked()) == 1 })
	mended.Store(true)
	w.settled()
}
