package consumer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
)

func TestMembersComeAndGoUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	steady := w.start(keep)
	var load sync.WaitGroup
	load.Go(func() {
		for i := range 150 {
			w.move(fmt.Sprint("k", i%17), fmt.Sprint("k", i%5), fmt.Sprint("k", i%29))
		}
	})
	for range 4 {
		m := w.start(keep)
		w.until("both work", func() bool { return w.members() == 2 })
		m.end(t)
	}
	load.Wait()
	w.settled()
	steady.end(t)
}

// rapidChecks sets how many runs a property gets whose runs take seconds,
// unless the command line says it.
func rapidChecks(t *testing.T, n string) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// flaky fails by chance, as an error or a panic, each event at most as often
// as given.
type flaky struct {
	mu    sync.Mutex
	left  map[moved]int
	times func() int
}

func (f *flaky) keep(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
	if err := keep(ctx, tx, e); err != nil {
		return err
	}
	f.mu.Lock()
	if _, known := f.left[e.Data]; !known {
		f.left[e.Data] = f.times()
	}
	f.left[e.Data]--
	left := f.left[e.Data]
	f.mu.Unlock()
	if left >= 0 && left%3 == 2 {
		panic("by chance")
	}
	if left >= 0 {
		return errors.New("by chance")
	}
	return nil
}

// Whatever keys, failures, members and restarts: each key's effects are
// exactly 1..n.
func TestEachKeyKeepsItsOrderWhateverHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	rapidChecks(t, "8")
	rapid.Check(t, func(rt *rapid.T) {
		w.exec(`TRUNCATE effect`)
		w.sent = map[string]int64{}
		run := rand.Int()
		chance := rapid.IntRange(0, 30).Draw(rt, "percent failing")
		most := rapid.IntRange(1, 8).Draw(rt, "failures of one event")
		f := &flaky{left: map[moved]int{}, times: func() int {
			if rand.IntN(100) < chance {
				return 1 + rand.IntN(most)
			}
			return 0
		}}
		workers := rapid.IntRange(1, 8).Draw(rt, "workers")
		limit := rapid.IntRange(1, 50).Draw(rt, "in flight")
		var members []*member
		rt.Repeat(map[string]func(*rapid.T){
			"publish": func(rt *rapid.T) {
				n := rapid.IntRange(1, 20).Draw(rt, "events")
				keys := make([]string, n)
				for i := range keys {
					keys[i] = fmt.Sprintf("%d.%d", run, rapid.IntRange(0, 6).Draw(rt, "key"))
				}
				w.move(keys...)
			},
			"join": func(rt *rapid.T) {
				if len(members) == 3 {
					rt.Skip()
				}
				members = append(members, w.start(f.keep, func(s *setup) {
					s.cfg.Workers, s.cfg.MaxInFlight = workers, limit
				}))
			},
			"leave": func(rt *rapid.T) {
				if len(members) == 0 {
					rt.Skip()
				}
				i := rapid.IntRange(0, len(members)-1).Draw(rt, "who")
				members[i].end(t)
				members = append(members[:i], members[i+1:]...)
			},
			"forget positions": func(*rapid.T) { w.exec(`UPDATE waybill.watermark SET next_offset = 0 WHERE random() < 0.5`) },
			"wait": func(rt *rapid.T) {
				<-time.After(time.Duration(rapid.IntRange(1, 150).Draw(rt, "ms")) * time.Millisecond)
			},
		})
		if len(members) == 0 {
			members = append(members, w.start(f.keep))
		}
		w.settled()
		for _, m := range members {
			m.end(t)
		}
	})
}

func TestWhatIsHeldInMemoryIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	const limit = 25
	for range 40 {
		keys := make([]string, 10)
		for i := range keys {
			keys[i] = fmt.Sprint("k", rand.IntN(50))
		}
		w.move(keys...)
	}
	hold := make(chan struct{})
	var calls atomic.Int32
	g := w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		calls.Add(1)
		<-hold
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.MaxInFlight = limit; s.cfg.Metrics = w.metrics })
	w.until("it is full", func() bool { return w.gauge("waybill_consumer_in_flight") == limit })
	w.until("its workers are busy", func() bool { return calls.Load() == 8 })
	<-time.After(200 * time.Millisecond)
	if n := w.gauge("waybill_consumer_in_flight"); n != limit || calls.Load() != 8 {
		t.Errorf("%v records in flight, limit %d; %d handlers at work, want 8", n, limit, calls.Load())
	}
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for pause(stop, time.Millisecond) {
			if n := w.gauge("waybill_consumer_in_flight"); n > limit {
				t.Errorf("%v in flight", n)
			}
		}
	})
	close(hold)
	w.settled()
	close(stop)
	watch.Wait()
	g.end(t)
	if n := w.gauge("waybill_consumer_in_flight"); n != 0 {
		t.Errorf("%v records in flight after the end", n)
	}
}

// A full member is still a member: others may join it, and it goes on.
func TestAFullMemberTakesPartInRebalances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	for range 30 {
		w.move("a", "b", "c", "d", "e", "f", "g", "h")
	}
	hold := make(chan struct{})
	slow := func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
		return keep(ctx, tx, e)
	}
	small := func(s *setup) { s.cfg.MaxInFlight = 4; s.cfg.Drain = 50 * time.Millisecond }
	w.start(slow, small, func(s *setup) { s.cfg.Metrics = w.metrics })
	w.until("it is full", func() bool { return w.gauge("waybill_consumer_in_flight") == 4 })
	w.start(keep, small)
	w.until("the other gets partitions", func() bool { return w.members() == 2 })
	close(hold)
	w.settled()
}
