package saga

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/saga/contracts"
)

// asks waits until a step was asked for n times.
func (w *world) asks(trip, step string, d contracts.Direction, n int) []published {
	w.t.Helper()
	var all []published
	w.until("the step is asked for", func() bool {
		all = nil
		for _, p := range w.published(trip) {
			if p.overdue.Step == step && p.overdue.Direction == d {
				all = append(all, p)
			}
		}
		return len(all) >= n
	})
	return all
}

func anOverdueStepIsAskedFor(w *world) {
	requested := w.record(tripRequested{"a", 1}, &event.Envelope{ID: event.NewID(), Tenant: w.tenant, CorrelationID: "chain-7"})
	w.send(requested)
	got := w.asks("a", "seat", contracts.DirectionForward, 1)[0]
	if o := got.overdue; o.Key != "a" || o.Saga != "book-trip" || o.Round != 1 || o.Asked != 1 || o.DueAt.IsZero() {
		w.t.Errorf("%+v", o)
	}
	d := w.get("a", 1)
	if got.Tenant != w.tenant || got.CorrelationID != "chain-7" || got.CausationID != d.Entries[0].ID.String() || got.Type != "waybill.saga.StepOverdue" {
		w.t.Errorf("%+v", got.Envelope)
	}
}

// The service heard the first ask, failed, heard the second, failed again, and
// succeeded at the third.
func aCompensationThatFailsTwiceSucceedsInTheEnd(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, cardRefused{"a", 1})
	asks := w.asks("a", "seat", contracts.DirectionBack, 3)
	w.publish(seatFreed{"a", 1})
	d := w.reaches("a", 1, Compensated, "")
	for i, a := range asks[:3] {
		if a.overdue.Asked != int32(i+1) {
			w.t.Errorf("ask %d says %d", i+1, a.overdue.Asked)
		}
	}
	if !has(d.Entries, Asked, "seat", Back) {
		w.t.Error("the record does not show the asks")
	}
}

func aCompensationThatNeverSucceedsNeedsAnOperator(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, cardRefused{"a", 1})
	d := w.reaches("a", 1, NeedsOperator, "seat")
	if d.DueAt != nil {
		w.t.Errorf("it is still to be asked for at %s", d.DueAt)
	}
	if n := len(w.asks("a", "seat", contracts.DirectionBack, 3)); n != 3 {
		w.t.Errorf("asked %d times", n)
	}
	w.until("it is logged", func() bool { return strings.Contains(w.logs.String(), "saga needs an operator") })
	seen, err := incident.List(w.t.Context(), w.db, time.Now().Add(-time.Hour), 10)
	if err != nil || len(seen) == 0 || seen[0].Part != "saga" || seen[0].Subject != "book-trip seat" {
		w.t.Errorf("%+v %v", seen, err)
	}
	w.until("it is counted", func() bool {
		return w.metric("waybill_saga_operator_needed_total") >= 1 && w.metric("waybill_saga_overdue_total") >= 3
	})

	// Resumed, it is asked for anew, as often.
	if _, err := Resume(w.t.Context(), w.db, d.Ref, Ask{By: "ana", Reason: "seats are up again"}); err != nil {
		w.t.Fatal(err)
	}
	asks := w.asks("a", "seat", contracts.DirectionBack, 4)
	if asks[3].overdue.Asked != 1 {
		w.t.Errorf("the first ask anew says %d", asks[3].overdue.Asked)
	}
	// The relay's part: services, and the observer too, hear of the ask.
	heard := w.record(asks[3].overdue, nil)
	w.send(heard)
	w.until("the record knows by which event services were told", func() bool {
		for _, e := range w.get("a", 1).Entries {
			if e.What == Asked && e.ToldAs != nil {
				return e.ToldAs.String() == string(heard.Headers[slices.IndexFunc(heard.Headers, func(h kgo.RecordHeader) bool { return h.Key == event.HeaderID })].Value) && e.DueAt.Equal(asks[3].overdue.DueAt)
			}
		}
		return false
	})
	w.publish(seatFreed{"a", 1})
	d = w.reaches("a", 1, Compensated, "")
	for _, e := range d.Entries {
		if e.What == Resumed && (e.By != "ana" || e.Reason != "seats are up again" || e.SeenAt.IsZero()) {
			w.t.Errorf("%+v", e)
		}
	}
	if !has(d.Entries, Resumed, "", "") {
		w.t.Error("nobody knows who resumed")
	}
}

func whatNobodyDoesNeedsAnOperatorToo(w *world) {
	w.publish(tripRequested{"a", 1})
	d := w.reaches("a", 1, NeedsOperator, "seat")
	if d.Direction != Forward {
		w.t.Errorf("%s", d.Direction)
	}
	// It goes on by itself when the event comes after all.
	w.publish(seatTaken{"a", 1}, cardCharged{"a", 1}, ticketMailed{"a", 1})
	w.reaches("a", 1, Completed, "")
}

func aSkippedStepCountsAsUndone(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, cardCharged{"a", 1}, mailRefused{"a", 1})
	w.until("all is seen", func() bool { return len(w.get("a", 1).Entries) == 4 })
	d := w.reaches("a", 1, Compensating, "charge")
	in, err := Skip(w.t.Context(), w.db, d.Ref, "charge", Ask{By: "rui", Reason: "refunded by bank transfer"})
	if err != nil || in.State != Compensating || in.Step != "seat" {
		w.t.Fatalf("%+v %v", in, err)
	}
	var got []published
	w.until("services are told", func() bool { got = w.published("a"); return len(got) == 1 })
	if s := got[0].skipped; s.Step != "charge" || s.Direction != contracts.DirectionBack || s.Key != "a" || got[0].Type != "waybill.saga.StepSkipped" {
		w.t.Errorf("%+v", got[0])
	}
	if got[0].CorrelationID != d.Entries[len(d.Entries)-1].CorrelationID || got[0].Tenant != w.tenant {
		w.t.Errorf("%+v", got[0].Envelope)
	}
	w.publish(seatFreed{"a", 1})
	d = w.reaches("a", 1, Compensated, "")
	if d.Steps[1].Is != "skipped" {
		w.t.Errorf("%+v", d.Steps)
	}
}

// The last step that is skipped ends the saga, and is told all the same.
func theLastSkipIsTold(w *world) {
	w.publish(tripRequested{"a", 1}, seatTaken{"a", 1}, cardRefused{"a", 1})
	d := w.reaches("a", 1, NeedsOperator, "seat")
	in, err := Skip(w.t.Context(), w.db, d.Ref, "", Ask{By: "rui", Reason: "by hand"})
	if err != nil || in.State != Compensated {
		w.t.Fatalf("%+v %v", in, err)
	}
	w.until("services are told", func() bool {
		all := w.published("a")
		return all[len(all)-1].skipped.Step == "seat"
	})
	w.until("nothing is left to do", func() bool {
		return w.number(`SELECT count(*) FROM saga.instances WHERE wake_at IS NOT NULL AND tenant = $1`, w.tenant) == 0
	})
}

func whatTheStateDoesNotAllowIsRefused(w *world) {
	w.publish(tripRequested{"a", 1}, tripRequested{"b", 1}, seatTaken{"b", 1}, cardRefused{"b", 1}, tripRequested{"c", 1}, seatRefused{"c", 1})
	running, back, ended := w.reaches("a", 1, Running, "seat").Ref, w.reaches("b", 1, Compensating, "seat").Ref, w.reaches("c", 1, Compensated, "").Ref
	resume := func(r Ref, a Ask) error { _, err := Resume(w.t.Context(), w.db, r, a); return err }
	skip := func(r Ref, step string, a Ask) error { _, err := Skip(w.t.Context(), w.db, r, step, a); return err }
	ana := Ask{By: "ana", Reason: "as the test wants it"}
	for want, err := range map[string]error{
		"needs no operator":               resume(back, ana),
		"it is compensated: nothing":      resume(ended, ana),
		"it is compensated: no step":      skip(ended, "", ana),
		"step seat is not overdue":        skip(running, "", ana),
		"step charge is not its turn":     skip(back, "charge", ana),
		"it has no step hotel":            skip(back, "hotel", ana),
		"a reason is kept":                skip(back, "", Ask{By: "ana"}),
		"who asks?":                       resume(back, Ask{}),
		"the reason is too long":          resume(back, Ask{By: "ana", Reason: strings.Repeat("x", 1001)}),
		"must be text":                    resume(back, Ask{By: "a\x00na"}),
		"there is no such saga":           resume(Ref{w.tenant, "book-trip", "z", 1}, ana),
		"saga book-flight/a/1: there is ": resume(Ref{w.tenant, "book-flight", "a", 1}, ana),
	} {
		if err == nil || !contains(err, want) {
			w.t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestRetentionPrunesWhatEnded(t *testing.T) {
	w := newWorld(t)
	w.observe(never, func(c *Config) { c.Keep, c.Metrics = 200*time.Millisecond, w.metrics })
	w.publish(tripRequested{"open", 1}, seatTaken{"a", 1}, cardRefused{"a", 1}, seatFreed{"a", 1})
	w.until("both were there, and what ended is gone", func() bool {
		return w.metric("waybill_saga_started_total") >= 2 && w.metric("waybill_saga_ended_total") >= 1 &&
			w.number(`SELECT count(*) FROM saga.instances`) == 1 && w.number(`SELECT count(*) FROM saga.entries WHERE key = 'a'`) == 0
	})
	if d := w.get("open", 1); d.State != Running || len(d.Entries) != 1 {
		t.Errorf("%+v", d.Instance)
	}
}

func TestGaugesShowWhatIsOpen(t *testing.T) {
	w := newWorld(t)
	w.observe(never, func(c *Config) { c.Metrics = w.metrics; c.Keep = time.Second })
	w.publish(tripRequested{"a", 1}, tripRequested{"b", 1}, seatTaken{"b", 1}, cardRefused{"b", 1})
	w.until("both are counted", func() bool {
		return w.metric("waybill_saga_open") == 2 && w.metric("waybill_saga_oldest_open_age_seconds") > 0 && w.metric("waybill_saga_started_total") >= 2
	})
	w.publish(seatFreed{"b", 1})
	w.until("one ended", func() bool { return w.metric("waybill_saga_open") == 1 && w.metric("waybill_saga_ended_total") >= 1 })
}
