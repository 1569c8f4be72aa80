package consumer

import (
	"errors"
	"testing"
	"time"
)

func TestAResetMovesPositionAndInboxTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	for range 20 {
		w.move("a", "b", "c", "d", "e")
	}
	m := w.start(keep)
	w.settled()
	deps := Deps{DB: w.db, Client: w.engine.Config.Client}
	if _, err := Reset(t.Context(), deps, w.group, w.contract.Topic, ToBeginning(), ResetOptions{}); !errors.Is(err, ErrRunning) {
		t.Errorf("a reset under a member at work: %v", err)
	}
	m.end(t)
	state := func() int64 {
		return w.number(`SELECT sum(next_offset)::bigint * 1000 + (SELECT count(*) FROM waybill.inbox) FROM waybill.watermark`)
	}
	before := state()
	dry := w.reset(ToBeginning(), ResetOptions{DryRun: true})
	if state() != before || len(dry) != 2 || dry[0].Again+dry[1].Again != 100 {
		t.Errorf("a dry run: %+v", dry)
	}
	moved := w.reset(ToBeginning(), ResetOptions{})
	if moved[0].Forgotten+moved[1].Forgotten != 100 || w.next() != 0 {
		t.Errorf("moved %+v, position %d", moved, w.next())
	}
	w.exec(`TRUNCATE effect`)
	m = w.start(keep)
	w.settled() // all of it anew
	m.end(t)
	w.reset(ToBeginning(), ResetOptions{KeepInbox: true})
	m = w.start(keep)
	w.until("read again", func() bool { return w.next() == 100 })
	w.inOrder() // and nothing twice
	m.end(t)
}

func TestAResetPassesOverWhatIsBeforeItsTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.publish(w.recordOf(moved{"old", 1}), w.recordOf(moved{"old", 2}))
	<-time.After(5 * time.Millisecond)
	at := time.Now()
	<-time.After(5 * time.Millisecond)
	w.publish(w.recordOf(moved{"late", 1}))
	for to, want := range map[To]int64{ToTime(at): 2, ToOffset(1): 1, ToNow(): 3, ToBeginning(): 0, ToTime(at.Add(time.Hour)): 3} {
		if m := w.reset(to, ResetOptions{}); len(m) != 1 || m[0].To != want || w.next() != want {
			t.Errorf("%+v: %+v, position %d, want %d", to, m, w.next(), want)
		}
	}
	_, err := Reset(t.Context(), Deps{DB: w.db, Client: w.engine.Config.Client}, w.group, w.contract.Topic, ToOffset(4), ResetOptions{})
	if err == nil {
		t.Error("an offset beyond the log was taken")
	}
	_, err = Reset(t.Context(), Deps{DB: w.db, Client: w.engine.Config.Client}, w.group, w.contract.Topic+"x", ToNow(), ResetOptions{})
	if err == nil {
		t.Error("a topic that is not there was taken")
	}
	w.reset(ToNow(), ResetOptions{})
	w.move("a", "b")
	w.start(keep)
	w.settled() // without the old ones
}

// Parked events that are read again are not handled twice, nor do they hold
// their key twice.
func TestAResetTakesParkedEventsAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	bad := troubleWith(moved{"a", 2}, moved{"b", 1})
	m := w.start(bad.keep)
	w.move("b", "a", "a", "a", "c")
	w.until("parked", func() bool { return w.number(`SELECT count(*) FROM waybill.parked`) == 3 && w.next() == 5 })
	m.end(t)
	moved := w.reset(ToOffset(1), ResetOptions{})
	if moved[0].Unparked != 2 || len(w.parked()) != 1 {
		t.Errorf("moved %+v, parked %+v", moved, w.parked())
	}
	w.exec(`TRUNCATE effect`)
	bad.mend()
	w.start(bad.keep)
	w.settled()
}
