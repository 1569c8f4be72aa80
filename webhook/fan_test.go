package webhook

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

const pendingSQL = `SELECT count(*) FROM webhook.due u JOIN webhook.deliveries d USING (tenant, endpoint, event_id) WHERE d.state = 'pending' AND endpoint = $1`

func TestAnEventIsOneDeliveryForEachEndpointThatWantsIt(t *testing.T) {
	w := newWorld(t)
	all, some := w.create("ana", "https://example.com/a"), w.create("ana", "https://example.com/b", "orders.>")
	none, other := w.create("ana", "https://example.com/c", "bills.>"), w.create("rui", "https://example.com/d")
	off := w.create("ana", "https://example.com/e")
	w.must(w.store.Disable(t.Context(), "ana", off.ID, ""))
	a, b := anEvent("ana", "orders.created"), anEvent("ana", "users.created")
	w.fan(a, b, a)
	w.fan(a) // as after a crash of whoever handed it over
	w.fan(Event{ID: a.ID, Tenant: "rui", Type: "x"})
	for e, want := range map[*Endpoint]int{&all: 2, &some: 1, &none: 0, &other: 1, &off: 0} {
		if n := w.count(pendingSQL, e.ID); n != want {
			t.Errorf("%s: %d deliveries, want %d", e.URL, n, want)
		}
	}
	if body, contentType, err := w.store.Body(t.Context(), "ana", a.ID); err != nil || string(body) != `{"a":1}` || contentType != "application/json" {
		t.Errorf("%s %s %v", body, contentType, err)
	}
	if _, _, err := w.store.Body(t.Context(), "rui", b.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("another tenant's body: %v", err)
	}
}

func TestNothingIsSentOfATransactionThatFails(t *testing.T) {
	w := newWorld(t)
	e := w.create("ana", "https://example.com/")
	undo := errors.New("undo")
	err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		w.must(w.store.Fan(t.Context(), tx, anEvent("ana", "a")))
		return undo
	})
	if !errors.Is(err, undo) || w.count(pendingSQL, e.ID) != 0 {
		t.Errorf("%v, %d deliveries", err, w.count(pendingSQL, e.ID))
	}
}

// A handler's transaction is shared: what is opened for all tenants is closed.
func TestHandingOverLeavesTheTransactionWalled(t *testing.T) {
	w := newWorld(t)
	w.create("ana", "https://example.com/")
	for name, events := range map[string][]Event{"delivered": {anEvent("ana", "a")}, "of nobody": {anEvent("eva", "a")}, "none": {}} {
		err := pg.InTenant(t.Context(), w.db, "rui", func(tx pgx.Tx) error {
			w.must(w.store.Fan(t.Context(), tx, events...))
			var n int
			err := tx.QueryRow(t.Context(), `SELECT count(*) FROM webhook.endpoints`).Scan(&n)
			if n != 0 {
				t.Errorf("%s: %d endpoints of others are seen", name, n)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	w.must(asOperator(t.Context(), w.db, func(tx pgx.Tx) error {
		w.must(w.store.Fan(t.Context(), tx, anEvent("eva", "a")))
		var n int
		err := tx.QueryRow(t.Context(), `SELECT count(*) FROM webhook.endpoints`).Scan(&n)
		if n != 1 {
			t.Errorf("an operator's transaction sees %d endpoints afterwards", n)
		}
		return err
	}))
}

func TestEventsThatCannotBeSentAreRefused(t *testing.T) {
	w := newWorld(t)
	w.create("ana", "https://example.com/")
	for _, e := range []Event{
		{},
		{ID: event.NewID(), Type: "a"},
		{ID: event.NewID(), Tenant: "ana"},
		{ID: event.NewID(), Tenant: "ana", Type: "a\nb"},
		{ID: event.NewID(), Tenant: "ana", Type: strings.Repeat("a", 501)},
		{ID: event.NewID(), Tenant: "ana", Type: "a", ContentType: "a\r\nX-Evil: 1"},
		{ID: event.NewID(), Tenant: "ana", Type: "a", Body: make([]byte, 256<<10+1)},
	} {
		err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error { return w.store.Fan(t.Context(), tx, e) })
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	w.fan(Event{ID: event.NewID(), Tenant: "ana", Type: "a", Key: "\x00\xff"}) // a key may be any bytes
}

func TestAnEventOfADayWithoutAPartitionIsKept(t *testing.T) {
	w := newWorld(t)
	e := w.create("ana", "https://example.com/")
	old := event.ForeignID("source", "1", time.Now().AddDate(-1, 0, 0))
	w.fan(Event{ID: old, Tenant: "ana", Type: "a"}, Event{ID: uuid.New(), Tenant: "ana", Type: "a"})
	if n := w.count(pendingSQL, e.ID); n != 2 {
		t.Errorf("%d deliveries", n)
	}
	w.must(EnsureDays(t.Context(), w.db)) // rows in the default partition are no obstacle
}

func TestReplayBeginsAnewWhatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	e := w.create("ana", "https://example.com/", "orders.>")
	var events []Event
	for range 10 {
		events = append(events, anEvent("ana", "orders.created"), anEvent("ana", "users.created"))
	}
	w.create("ana", "https://example.com/all")
	w.fan(events...)
	// Five were delivered, five failed.
	w.must(asOperator(ctx, w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `WITH n AS (SELECT event_id, row_number() OVER (ORDER BY event_id) AS n FROM webhook.deliveries WHERE endpoint = $1),
			gone AS (DELETE FROM webhook.due WHERE endpoint = $1)
			UPDATE webhook.deliveries d SET state = CASE WHEN n % 2 = 0 THEN 'failed' ELSE 'delivered' END, finished_at = now(), attempts = 3
			FROM n WHERE d.event_id = n.event_id AND d.endpoint = $1`, e.ID)
		return err
	}))
	page, err := w.store.Replay(ctx, "ana", e.ID, Replay{Failed: true, Limit: 3})
	if err != nil || page.Count != 3 || page.Next == uuid.Nil {
		t.Fatalf("%+v, %v", page, err)
	}
	page, err = w.store.Replay(ctx, "ana", e.ID, Replay{Failed: true, Limit: 3, After: page.Next})
	if err != nil || page.Count != 2 || page.Next != uuid.Nil {
		t.Fatalf("%+v, %v", page, err)
	}
	if n := w.count(`SELECT count(*) FROM webhook.due WHERE endpoint = $1 AND NOT fresh`, e.ID); n != 5 {
		t.Errorf("%d are due, want 5 that stand behind first tries", n)
	}
	// All since: what is on its way already is not counted, what it does not want neither.
	page, err = w.store.Replay(ctx, "ana", e.ID, Replay{Since: time.Now().Add(-time.Hour)})
	if err != nil || page.Count != 5 || page.Next != uuid.Nil {
		t.Errorf("%+v, %v", page, err)
	}
	if _, err := w.store.Replay(ctx, "ana", e.ID, Replay{}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	// One that it was never sent, and that is known.
	w.must(w.store.Resend(ctx, "ana", e.ID, events[1].ID))
	if d := w.delivery(e, events[1].ID); d.State != Pending || d.NextAt == nil {
		t.Errorf("%+v", d)
	}
	if err := w.store.Resend(ctx, "ana", e.ID, event.NewID()); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	w.must(w.store.Disable(ctx, "ana", e.ID, "on holiday"))
	_, pinged := w.store.Ping(ctx, "ana", e.ID)
	for what, err := range map[string]error{"resend": w.store.Resend(ctx, "ana", e.ID, events[0].ID), "ping": pinged} {
		if !errors.Is(err, ErrDisabled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestDeliveriesAreListedByPages(t *testing.T) {
	w := newWorld(t)
	e := w.create("ana", "https://example.com/")
	var events []Event
	for range 7 {
		events = append(events, anEvent("ana", "a"))
	}
	w.fan(events...)
	var got []uuid.UUID
	f := DeliveryFilter{Limit: 3, State: Pending}
	for {
		page, err := w.store.Deliveries(t.Context(), "ana", e.ID, f)
		w.must(err)
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			got = append(got, d.EventID)
		}
		f.Before = got[len(got)-1]
	}
	for i, id := range got {
		if id != events[len(events)-1-i].ID {
			t.Errorf("%d: %s", i, id)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d listed", len(got))
	}
	if page, err := w.store.Deliveries(t.Context(), "ana", e.ID, DeliveryFilter{Since: time.Now().Add(time.Hour)}); err != nil || len(page) != 0 {
		t.Errorf("%v, %v", page, err)
	}
}
