package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/saga/contracts"
)

// An event that lies unread when the deadline passes is read before anybody is
// asked: the observer was away.
func TestAnObserverThatWasAwayCallsNothingOverdueThatIsNot(t *testing.T) {
	w := newWorld(t)
	o := w.observe(never)
	w.publish(tripRequested{"a", 1})
	w.reaches("a", 1, Running, "seat")
	o.stop()
	w.publish(seatTaken{"a", 1}, cardCharged{"a", 1}, ticketMailed{"a", 1})
	w.wake()
	w.observe(time.Millisecond) // by which all of it is long overdue
	w.reaches("a", 1, Completed, "")
	if n := len(w.published("a")); n != 0 {
		t.Errorf("%d steps were called overdue", n)
	}
}

// wake has the deadlines look at every instance.
func (w *world) wake() {
	w.t.Helper()
	w.must(within(w.t.Context(), w.db, "", func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), `UPDATE saga.instances SET wake_at = clock_timestamp()`)
		return err
	}))
}

// Where the group does not read on, as at the marks of a transaction, deadlines
// go by what is known.
func TestDeadlinesDoNotWaitForEverForWhatIsNotRead(t *testing.T) {
	w := newWorld(t)
	w.publish(tripRequested{"a", 1})
	b := &barrier{cl: w.producer, db: w.db, group: w.group, topics: []string{tripRequestedC.Topic}, standstill: never, log: slog.New(slog.DiscardHandler), movedAt: time.Now()}
	w.until("the topic is known", func() bool {
		w.must(b.raise(t.Context(), time.Now()))
		return len(b.ends) > 0
	})
	if reached, err := b.reached(t.Context()); err != nil || reached {
		t.Errorf("what was not read holds nothing: %v", err)
	}
	b.standstill = 0
	if reached, err := b.reached(t.Context()); err != nil || !reached {
		t.Errorf("it does not go on: %v", err)
	}
}

// outboxThat does something of the test's before it adds.
type outboxThat struct {
	*outbox.Outbox
	before func()
}

func (o outboxThat) Add(ctx context.Context, tx pgx.Tx, events ...event.Data) error {
	o.before()
	return o.Outbox.Add(ctx, tx, events...)
}

// The deadline has the row: the event waits, and both count.
func TestAnEventThatArrivesWhileItsStepIsAskedForCounts(t *testing.T) {
	w := newWorld(t)
	asking, goOn := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(asking); <-goOn })
	o, err := New(Deps{DB: w.db, Client: w.engine.Config.Client, Decoder: plain{}, Outbox: outboxThat{outbox.New(contracts.All(), outbox.Config{}), once}},
		Config{Group: w.group, Every: 20 * time.Millisecond, Filter: consumer.Filter{Tenants: []string{w.tenant}}}, trip(50*time.Millisecond))
	w.must(err)
	stop := w.run(o)
	defer stop()
	w.publish(tripRequested{"a", 1})
	<-asking
	w.publish(seatTaken{"a", 1})
	w.until("the event waits for the row", func() bool {
		return w.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	close(goOn)
	w.until("it counts", func() bool { return w.get("a", 1).Steps != nil && w.get("a", 1).Steps[0].Is == "done" })
	if d := w.get("a", 1); !has(d.Entries, Asked, "seat", Forward) {
		t.Error("the ask is not in the record")
	}
}

// The event has the row: the deadline passes it over, and finds it moved on.
func TestADeadlinePassesOverWhatAnEventIsMovingOn(t *testing.T) {
	w := newWorld(t)
	w.observe(never)
	w.publish(tripRequested{"a", 1})
	d := w.reaches("a", 1, Running, "seat")
	o, err := New(Deps{DB: w.db, Client: w.engine.Config.Client, Decoder: plain{}, Outbox: outbox.New(contracts.All(), outbox.Config{})}, Config{Group: w.group}, trip(never))
	w.must(err)
	w.wake()
	errDone := errors.New("done")
	err = within(t.Context(), w.db, w.tenant, func(tx pgx.Tx) error {
		if _, _, err := lock(t.Context(), tx, d.Ref); err != nil {
			return err
		}
		if some, err := o.actOnNext(t.Context(), time.Now().Add(2*never)); some || err != nil {
			t.Errorf("it acted on what is locked: %v %v", some, err)
		}
		return errDone
	})
	if !errors.Is(err, errDone) {
		t.Fatal(err)
	}
	w.publish(seatTaken{"a", 1})
	w.reaches("a", 1, Running, "charge")
	for range 3 {
		if _, err := o.actOnNext(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.published("a")); n != 0 {
		t.Errorf("%d steps were called overdue", n)
	}
}

// An operator and an event at once: one of them is first, and the other is
// refused, or changes nothing.
func TestASkipThatRacesWithItsEventIsDecidedByTheRow(t *testing.T) {
	w := newWorld(t)
	w.observe(never)
	var all sync.WaitGroup
	for i := range 10 {
		k := fmt.Sprint("trip-", i)
		w.publish(tripRequested{k, 1}, seatTaken{k, 1}, seatRefused{k, 1})
		w.reaches(k, 1, Compensating, "seat")
		freed := w.record(seatFreed{k, 1}, nil)
		all.Go(func() {
			if err := w.producer.ProduceSync(t.Context(), freed).FirstErr(); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := Skip(t.Context(), w.db, w.ref(k, 1), "seat", Ask{By: "rui", Reason: "by hand"}); err != nil && !errors.Is(err, ErrRefused) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range 10 {
		k := fmt.Sprint("trip-", i)
		w.until("both are seen", func() bool { return has(w.get(k, 1).Entries, Undone, "seat", "") })
		w.reaches(k, 1, Compensated, "")
	}
}

// At each step the observer is cut off and begun again.
func TestAnObserverMayDieBetweenAnySteps(t *testing.T) {
	w := newWorld(t)
	o := w.observe(never)
	for i, e := range []event.Data{tripRequested{"a", 1}, seatTaken{"a", 1}, cardCharged{"a", 1}, mailRefused{"a", 1}, cardRefunded{"a", 1}, seatFreed{"a", 1}} {
		w.publish(e) // it may be recorded before the stop or after it
		if i%2 == 0 {
			w.until("it is seen", func() bool { return len(w.get("a", 1).Entries) == i+1 })
		}
		o.stop()
		o = w.observe(never)
	}
	d := w.reaches("a", 1, Compensated, "")
	if len(d.Entries) != 6 {
		t.Errorf("%d entries of 6 events", len(d.Entries))
	}
}
