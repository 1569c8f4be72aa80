package saga

import (
	"testing"
	"time"

	"github.com/waybillhq/waybill/event"
)

// The parts share a database, a broker and an observer, each as a tenant of its
// own.
func TestWhatAnObserverSees(t *testing.T) {
	w := newWorld(t)
	w.observe(never)
	w.part("a choreography is recorded to its end", aChoreographyIsRecordedToItsEnd)
	w.part("what failed is compensated backwards", whatFailedIsCompensatedBackwards)
	w.part("rounds of a key are apart", roundsOfAKeyAreApart)
	w.part("an abort concerns every round", anAbortConcernsEveryRound)
	w.part("an abort turns back what was complete", anAbortTurnsBackWhatWasComplete)
	w.part("a late step reopens what was compensated", aLateStepReopensWhatWasCompensated)
	w.part("events out of order and twice come to the same", eventsOutOfOrderAndTwiceComeToTheSame)
	w.part("the record is bounded", theRecordIsBounded)
	w.part("another tenant sees nothing", anotherTenantSeesNothing)
	w.part("lists are paged", listsArePaged)
	w.part("a skipped step counts as undone", aSkippedStepCountsAsUndone)
	w.part("what the state does not allow is refused", whatTheStateDoesNotAllowIsRefused)
}

func TestWhatDeadlinesBringAbout(t *testing.T) {
	w := newWorld(t)
	w.observe(50*time.Millisecond, func(c *Config) { c.Metrics = w.metrics })
	w.part("an overdue step is asked for", anOverdueStepIsAskedFor)
	w.part("a compensation that fails twice succeeds in the end", aCompensationThatFailsTwiceSucceedsInTheEnd)
	w.part("a compensation that never succeeds needs an operator", aCompensationThatNeverSucceedsNeedsAnOperator)
	w.part("what nobody does needs an operator too", whatNobodyDoesNeedsAnOperatorToo)
	w.part("the last skip is told", theLastSkipIsTold)
}

func aChoreographyIsRecordedToItsEnd(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, cardCharged{"a", 1}, ticketMailed{"a", 1})
	w.reaches("a", 1, Completed, "")
	w.until("all is seen", func() bool { return len(w.get("a", 1).Entries) == 4 }) // the start may come last
	if d := w.get("a", 1); d.State != Completed || d.EndedAt == nil || d.Tenant != w.tenant {
		w.t.Errorf("%s %v", d.State, d.EndedAt)
	}
	if n := len(w.published("")); n != 0 {
		w.t.Errorf("%d events were published", n)
	}
}

func whatFailedIsCompensatedBackwards(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, cardCharged{"a", 1})
	w.reaches("a", 1, Running, "mail")
	w.publish(mailRefused{"a", 1})
	w.reaches("a", 1, Compensating, "charge")
	w.publish(cardRefunded{"a", 1})
	w.reaches("a", 1, Compensating, "seat")
	w.publish(seatFreed{"a", 1})
	w.reaches("a", 1, Compensated, "")
}

func roundsOfAKeyAreApart(w *world) {
	w.publish(tripRequested{"a", 1}, seatRefused{"a", 1}, tripRequested{"a", 2}, seatTaken{"a", 2})
	w.reaches("a", 1, Compensated, "")
	w.reaches("a", 2, Running, "charge")
	if d := w.get("a", 0); d.Round != 2 {
		w.t.Errorf("the last round is %d", d.Round)
	}
}

// A cancellation is of the whole trip: of rounds there are, and those to come.
func anAbortConcernsEveryRound(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, tripRequested{"a", 2}, seatTaken{"a", 2})
	w.reaches("a", 1, Running, "charge")
	w.reaches("a", 2, Running, "charge")
	w.publish(tripCancelled{"a", 0})
	w.reaches("a", 1, Compensating, "seat")
	w.reaches("a", 2, Compensating, "seat")
	w.publish(seatTaken{"a", 3})
	w.reaches("a", 3, Compensating, "seat")
	w.publish(seatFreed{"a", 1}, seatFreed{"a", 2}, seatFreed{"a", 3})
	for round := 1; round <= 3; round++ {
		w.reaches("a", round, Compensated, "")
	}
}

func anAbortTurnsBackWhatWasComplete(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, cardCharged{"a", 1}, ticketMailed{"a", 1})
	w.reaches("a", 1, Completed, "")
	w.publish(tripCancelled{"a", 0})
	d := w.reaches("a", 1, Compensating, "charge")
	if d.EndedAt != nil || d.Direction != Back {
		w.t.Errorf("%v %s", d.EndedAt, d.Direction)
	}
	w.publish(cardRefunded{"a", 1}, seatFreed{"a", 1})
	w.reaches("a", 1, Compensated, "")
}

// A step that is done after the saga was undone has to be undone as well.
func aLateStepReopensWhatWasCompensated(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, tripCancelled{"a", 1}, seatFreed{"a", 1})
	w.reaches("a", 1, Compensated, "")
	w.publish(cardCharged{"a", 1})
	d := w.reaches("a", 1, Compensating, "charge")
	if d.EndedAt != nil {
		w.t.Error("it has an end")
	}
	w.publish(cardRefunded{"a", 1})
	w.reaches("a", 1, Compensated, "")
}

// Services' topics are read side by side: an effect may be seen before its
// cause, and both several times.
func eventsOutOfOrderAndTwiceComeToTheSame(w *world) {
	mailed := w.record(ticketMailed{"a", 1}, nil)
	w.send(mailed)
	w.reaches("a", 1, Running, "seat")
	w.publish(cardCharged{"a", 1})
	w.send(mailed)
	w.publish(seatTaken{"a", 1}, seatTaken{"a", 1}) // two events that say the same
	w.send(mailed)
	w.reaches("a", 1, Completed, "")
	w.publish(tripRequested{"a", 1})
	w.until("all is seen", func() bool { return len(w.get("a", 1).Entries) == 5 })
	if d := w.get("a", 1); d.State != Completed {
		w.t.Errorf("%s", d.State)
	}
}

// However often services say the same, the record is bounded, and what says
// something new is kept.
func theRecordIsBounded(w *world) {
	w.publish(tripRequested{"a", 1})
	same := make([]event.Data, maxEvents+20)
	for i := range same {
		same[i] = seatTaken{"a", 1}
	}
	w.publish(same...)
	w.until("what is too much is counted", func() bool { return w.get("a", 1).LeftOut == 21 })
	w.publish(seatFreed{"a", 1})
	d := w.reaches("a", 1, Compensated, "")
	if len(d.Entries) != maxEvents+1 {
		w.t.Errorf("%d entries", len(d.Entries))
	}
}

func anotherTenantSeesNothing(w *world) {
	w.publish(tripRequested{"solo", 1})
	w.reaches("solo", 1, Running, "seat")
	other := w.others[len(w.others)-1]
	page, err := List(w.t.Context(), w.db, Filter{Tenant: other})
	if err != nil || len(page.Instances) != 0 {
		w.t.Errorf("%+v %v", page, err)
	}
	for _, do := range []func(Ref) error{
		func(r Ref) error { _, err := Get(w.t.Context(), w.db, r); return err },
		func(r Ref) error { _, err := Resume(w.t.Context(), w.db, r, Ask{By: "eve"}); return err },
		func(r Ref) error { _, err := Skip(w.t.Context(), w.db, r, "", Ask{By: "eve", Reason: "x"}); return err },
	} {
		if err := do(Ref{other, "book-trip", "solo", 1}); err == nil || !contains(err, ErrNotFound.Error()) {
			w.t.Errorf("%v", err)
		}
	}
	// The policy holds where a query names no tenant.
	var n int
	if err := w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM saga.instances`).Scan(&n); err != nil || n != 0 {
		w.t.Errorf("%d rows without a tenant, %v", n, err)
	}
	// One key of two tenants is two instances, and a person must say which.
	mine := w.tenant
	w.tenant = other
	w.publish(tripRequested{"solo", 1})
	w.reaches("solo", 1, Running, "seat")
	if _, err := Get(w.t.Context(), w.db, Ref{"", "book-trip", "solo", 0}); err == nil || !contains(err, "say whose") {
		w.t.Errorf("%v", err)
	}
	if page, err := List(w.t.Context(), w.db, Filter{Key: "solo"}); err != nil || len(page.Instances) != 2 {
		w.t.Errorf("the operator sees %d, %v", len(page.Instances), err)
	}
	w.tenant = mine
}

func listsArePaged(w *world) {
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		w.publish(tripRequested{k, 1})
		w.reaches(k, 1, Running, "seat")
	}
	var seen string
	f := Filter{Tenant: w.tenant, Limit: 2, Open: true, State: Running, Saga: "book-trip"}
	for {
		page, err := List(w.t.Context(), w.db, f)
		w.must(err)
		for _, in := range page.Instances {
			seen += in.Key
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	if seen != "edcba" {
		w.t.Errorf("%s", seen)
	}
	if _, err := List(w.t.Context(), w.db, Filter{After: "x"}); err == nil || !contains(err, "no place to go on from") {
		w.t.Errorf("%v", err)
	}
	if page, err := List(w.t.Context(), w.db, Filter{Tenant: w.tenant, Stuck: true}); err != nil || len(page.Instances) != 0 {
		w.t.Errorf("%+v %v", page, err)
	}
}
