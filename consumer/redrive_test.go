package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/event"
)

// broken fails for everything of some keys until it is mended.
type broken struct {
	keys   map[string]bool
	mended atomic.Bool
}

func breaks(keys ...string) *broken {
	b := &broken{keys: map[string]bool{}}
	for _, k := range keys {
		b.keys[k] = true
	}
	return b
}

var errBroken = errors.New("broken")

func (b *broken) keep(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
	if b.keys[e.Data.Account] && !b.mended.Load() {
		return errBroken
	}
	return keep(ctx, tx, e)
}

// atOnce makes every failure a death.
var atOnce = policy(When("broken", Is(errBroken)))

func TestRedriveKeepsOrderWhileNewEventsArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	b := breaks("a", "b")
	w.start(b.keep, atOnce)
	for range 50 {
		w.move("a", "b", "c")
	}
	w.untilDead(2)
	b.mended.Store(true)
	var load sync.WaitGroup
	load.Go(func() {
		for range 100 {
			w.move("a", "b", "c")
		}
	})
	r := w.redrive(DeadFilter{})
	load.Wait()
	w.settled()
	p, err := FindRedrive(t.Context(), w.db, r.Run)
	if err != nil || p != (RedriveProgress{Keys: 2, Freed: 2}) || !p.Done() {
		t.Errorf("%+v %v", p, err)
	}
}

func TestRedriveKeepsOrderAcrossARebalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	var keys []string
	for i := range 30 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	b := breaks(keys...)
	first := w.start(b.keep, atOnce)
	for range 10 {
		w.move(keys...)
	}
	w.untilDead(30)
	b.mended.Store(true)
	w.redrive(DeadFilter{})
	w.start(b.keep, atOnce)
	w.move(keys...)
	w.until("both work", func() bool { return w.members() == 2 })
	first.end(t)
	w.move(keys...)
	w.settled()
}

func TestRedriveTwiceIsAsGoodAsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	b := breaks("a")
	m := w.start(b.keep, atOnce)
	w.move("a", "a")
	w.untilDead(1)
	m.end(t) // nobody to do it yet
	if r := w.redrive(DeadFilter{}); r.Keys != 1 {
		t.Errorf("%+v", r)
	}
	if r := w.redrive(DeadFilter{}); r.Keys != 0 || r.Run != "" {
		t.Errorf("the second time: %+v", r)
	}
	b.mended.Store(true)
	w.start(b.keep, atOnce)
	w.settled()
	if r := w.redrive(DeadFilter{}); r.Keys != 0 {
		t.Errorf("afterwards: %+v", r)
	}
}

func TestADryRunCountsAndTouchesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	b := breaks("a", "b")
	w.start(b.keep, atOnce)
	w.move("a", "b", "b")
	w.untilDead(2)
	w.until("what came behind waits", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 3 })
	r, err := Redrive(t.Context(), w.db, DeadFilter{Group: w.group}, Ask{By: "tester", DryRun: true})
	if err != nil || r.Keys != 2 || r.Run != "" {
		t.Errorf("%+v %v", r, err)
	}
	key := "b"
	d, err := Drop(t.Context(), w.db, Dropping{Group: w.group, Topic: w.contract.Topic, Key: &key}, Ask{By: "tester", Reason: "see", DryRun: true})
	if err != nil || d.Events != 2 || d.Run != "" {
		t.Errorf("%+v %v", d, err)
	}
	if n := w.number(`SELECT count(*) FROM waybill.parked WHERE state IN ('dead', 'waiting')`); n != 3 || w.number(`SELECT count(*) FROM waybill.dead_action`) != 0 {
		t.Errorf("%d rows", n)
	}
}

// Filters choose by cause, type, key, tenant and time; what they leave out
// stays dead.
func TestRedriveOfACauseOfAThousandKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	var mended atomic.Bool
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		switch {
		case e.Data.Account == "other":
			return fmt.Errorf("another cause: %w", errBroken)
		case !mended.Load():
			return fmt.Errorf("account %q: %w", e.Data.Account, errBroken)
		}
		return keep(ctx, tx, e)
	}, atOnce)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	w.move(keys...)
	w.move("other")
	w.move(keys[:100]...) // some of them have more behind
	w.untilIn(5*time.Minute, "all are dead", func() bool { return w.number(`SELECT count(*) FROM waybill.parked WHERE state = 'dead'`) == 1001 })
	_, cause := causeOf(`account "k7": broken`)
	mended.Store(true)
	r := w.redrive(DeadFilter{Cause: cause})
	if r.Keys != 1000 {
		t.Fatalf("%+v", r)
	}
	w.untilIn(5*time.Minute, "all of the cause are free", func() bool {
		p, err := FindRedrive(t.Context(), w.db, r.Run)
		return err == nil && p.Freed == 1000 && p.Done()
	})
	w.until("their effects are made", func() bool { return w.number(`SELECT count(*) FROM effect`) == 1100 })
	if left := w.deadKeys(DeadFilter{}); len(left) != 1 || left[0].Key != "other" {
		t.Errorf("%+v", left)
	}
	delete(w.sent, "other")
	w.inOrder()
}

func TestATenantsFilterChoosesItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	b := breaks("a", "b")
	w.start(b.keep, atOnce)
	w.move("a", "b", "b")
	w.untilDead(2)
	mine := DeadFilter{Tenant: "tenant-of-b"}
	if k := w.deadKeys(mine); len(k) != 1 || k[0].Key != "b" {
		t.Errorf("%+v", k)
	}
	if k := w.deadKeys(DeadFilter{Tenant: "tenant"}); len(k) != 0 {
		t.Errorf("%+v", k)
	}
	other := w.deadKeys(DeadFilter{Tenant: "tenant-of-a"})[0]
	if _, err := ShowDead(t.Context(), w.db, w.group, "tenant-of-b", other.EventID); !errors.Is(err, ErrNotParked) {
		t.Errorf("another tenant's event: %v", err)
	}
	key := "a"
	d, err := Drop(t.Context(), w.db, Dropping{Group: w.group, Topic: w.contract.Topic, Key: &key, Tenant: "tenant-of-b"}, Ask{By: "tester", Reason: "x"})
	if err != nil || d.Events != 0 {
		t.Errorf("%+v %v", d, err)
	}
	b.mended.Store(true)
	w.redrive(mine)
	w.until("its key is free", func() bool { return w.effects("b") == 2 })
	if w.effects("a") != 0 || len(w.deadKeys(DeadFilter{})) != 1 {
		t.Error("another tenant's event moved")
	}
}

func TestFiltersByTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start(breaks("a", "b").keep, atOnce)
	w.move("a", "b")
	w.untilDead(2)
	w.exec(`UPDATE waybill.parked SET dead_at = dead_at - interval '1 day' WHERE key = 'a'`)
	hour := time.Now().Add(-time.Hour)
	since, until := w.deadKeys(DeadFilter{Since: hour}), w.deadKeys(DeadFilter{Until: hour})
	if len(since) != 1 || since[0].Key != "b" || len(until) != 1 || until[0].Key != "a" {
		t.Errorf("since %+v, until %+v", since, until)
	}
}

// Two groups of one topic have the same event dead; one has it redriven.
func TestNothingOfAnotherGroupMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	b, other := breaks("a"), breaks("a")
	var others atomic.Int32
	w.start(b.keep, atOnce)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		others.Add(1)
		return other.keep(ctx, tx, e)
	}, atOnce, func(s *setup) { s.cfg.Group += ".other" })
	w.move("a", "a")
	w.untilDead(1)
	w.until("dead in the other", func() bool {
		return w.number(`SELECT count(*) FROM waybill.parked WHERE state = 'dead' AND copied_at IS NOT NULL`) == 2
	})
	b.mended.Store(true)
	other.mended.Store(true)
	w.redrive(DeadFilter{})
	w.until("this one is free", func() bool { return w.effects("a") == 2 && len(w.parked()) == 0 })
	w.until("the partition moved on", func() bool { return w.next() == 2 })
	if n := w.number(`SELECT count(*) FROM waybill.parked WHERE state = 'dead'`); n != 1 || others.Load() != 1 {
		t.Errorf("%d dead of the other group, which tried %d times", n, others.Load())
	}
	end, err := w.engineEnd()
	if err != nil || end != 2 {
		t.Errorf("the topic ends at %d: %v", end, err)
	}
}

func TestADroppedEventLetsItsKeyGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	tr := troubleWith(moved{"a", 2}, moved{"a", 3})
	w.start(tr.keep, policy(When("trouble", Is(errTrouble))))
	w.move("a", "a", "a", "a", "b")
	for n := int64(2); n <= 3; n++ {
		var k DeadKey
		w.until("it is dead", func() bool {
			keys := w.deadKeys(DeadFilter{})
			if len(keys) == 1 {
				k = keys[0]
			}
			return len(keys) == 1 && k.Offset == n-1 && k.CopiedAt != nil
		})
		d, err := Drop(t.Context(), w.db, Dropping{Group: w.group, Event: k.EventID}, Ask{By: "ana@desk", Reason: "test order"})
		if err != nil || d.Events != 1 {
			t.Fatalf("%+v %v", d, err)
		}
		if n := w.number(`SELECT count(*) FROM waybill.dead_action WHERE run::text = $1 AND by = 'ana@desk' AND reason = 'test order'
			AND event_id::text = $2 AND at > now() - interval '1 minute' AND error <> ''`, d.Run, k.EventID); n != 1 {
			t.Errorf("%d notes", n)
		}
	}
	w.until("the key goes on", func() bool { return w.effects("a") == 2 && len(w.parked()) == 0 })
	tr.mend()
	w.exec(`UPDATE waybill.watermark SET next_offset = 0`) // also when it is delivered again
	w.move("a")
	w.until("what comes later too", func() bool { return w.effects("a") == 3 })
}

func TestADroppedKeyStartsAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	b := breaks("a")
	w.start(b.keep, atOnce)
	w.move("a", "a", "a", "b")
	w.untilDead(1)
	w.until("all parked", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 3 })
	b.mended.Store(true)
	key := "a"
	d, err := Drop(t.Context(), w.db, Dropping{Group: w.group, Topic: w.contract.Topic, Key: &key}, Ask{By: "t", Reason: "r"})
	if err != nil || d.Events != 3 {
		t.Fatalf("%+v %v", d, err)
	}
	w.move("a", "a")
	w.until("new events flow", func() bool { return w.effects("a") == 2 && w.number(`SELECT count(*) FROM waybill.parked`) == 0 })
}

// What a handler is at work on is either handled or dropped, never both.
func TestDropWaitsForAHandlerAtWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	b := breaks("a")
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if err := b.keep(ctx, tx, e); err != nil || e.Data.Account != "a" {
			return err
		}
		begun <- struct{}{}
		<-goOn
		return nil
	}, atOnce)
	w.move("a")
	k := w.untilDead(1)[0]
	b.mended.Store(true)
	w.redrive(DeadFilter{})
	<-begun
	var d Dropped
	var err error
	var asking sync.WaitGroup
	asking.Go(func() {
		d, err = Drop(t.Context(), w.db, Dropping{Group: w.group, Event: k.EventID}, Ask{By: "t", Reason: "r"})
	})
	w.until("it waits", func() bool {
		return w.number(`SELECT count(*) FROM pg_locks WHERE NOT granted`) > 0
	})
	close(goOn)
	asking.Wait()
	if err != nil || d.Events != 0 || w.effects("a") != 1 {
		t.Errorf("%+v %v, %d effects", d, err, w.effects("a"))
	}
	w.settled()
}

func TestWhatIsAskedWithoutANameOrAReasonIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	key := "a"
	for _, err := range []error{
		second(Redrive(t.Context(), w.db, DeadFilter{}, Ask{})),
		second(Drop(t.Context(), w.db, Dropping{Group: "g", Event: "x"}, Ask{By: "me"})),
		second(Drop(t.Context(), w.db, Dropping{Event: "x"}, Ask{By: "me", Reason: "r"})),
		second(Drop(t.Context(), w.db, Dropping{Group: "g"}, Ask{By: "me", Reason: "r"})),
		second(Drop(t.Context(), w.db, Dropping{Group: "g", Event: "x", Key: &key}, Ask{By: "me", Reason: "r"})),
		second(Drop(t.Context(), w.db, Dropping{Group: "g", Key: &key}, Ask{By: "me", Reason: "r"})),
		second(FindRedrive(t.Context(), w.db, "7f1c0a52-2c72-75f0-aa72-24d230e51962")),
	} {
		if err == nil {
			t.Error("taken")
		}
	}
}

func second[T any](_ T, err error) error { return err }

// engineEnd is how many records the topic has.
func (w *world) engineEnd() (n int64, err error) {
	ends, err := kadm.NewClient(w.producer).ListEndOffsets(w.t.Context(), w.contract.Topic)
	if err != nil {
		return 0, err
	}
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n, ends.Error()
}

// untilIn is until for what takes a machine with more to do its time.
func (w *world) untilIn(most time.Duration, what string, cond func() bool) {
	w.t.Helper()
	limit := time.After(most)
	for !cond() {
		select {
		case <-limit:
			w.t.Fatalf("never: %s", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
