package webhook

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg/daypart"
)

// aged are events of a day long ago.
func (w *world) aged(e Endpoint, day time.Time, n int) (events []Event) {
	for i := range n {
		events = append(events, Event{ID: event.ForeignID("aged", string(rune('a'+i)), day), Tenant: e.Tenant, Type: "a"})
	}
	w.fan(events...)
	return events
}

// finish has nothing be due but what is kept.
func (w *world) finish(e Endpoint, keep ...Event) {
	w.t.Helper()
	w.must(asOperator(w.t.Context(), w.db, func(tx pgx.Tx) error {
		ids := []uuid.UUID{} // not NULL
		for _, ev := range keep {
			ids = append(ids, ev.ID)
		}
		_, err := tx.Exec(w.t.Context(), `DELETE FROM webhook.due WHERE endpoint = $1 AND NOT (event_id = ANY($2))`, e.ID, ids)
		return err
	}))
}

func TestDaysThatHavePassedAreDroppedUnlessTheyAreAwaited(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	e := w.create("ana", "https://example.com/")
	now := time.Now()
	gone, awaited := now.AddDate(0, 0, -40), now.AddDate(0, 0, -35)
	for _, table := range []daypart.Table{messages, deliveries} {
		for _, day := range []time.Time{gone, awaited} {
			w.must(daypart.Ensure(ctx, operatorDB{w.db}, table, day, day))
		}
	}
	old, again := w.aged(e, gone, 3), w.aged(e, awaited, 3)
	late := w.aged(e, now.AddDate(0, 0, -60), 2) // of a day without a partition
	today := anEvent("ana", "a")
	w.fan(today)
	w.finish(e, again[0])
	w.must(asOperator(ctx, w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE webhook.messages_default SET stored_at = now() - interval '31 days' WHERE event_id = $1`, late[0].ID)
		return err
	}))
	w.must(w.store.prune(ctx, now.AddDate(0, 0, -30)))
	kept := func(ev Event) bool {
		_, _, err := w.store.Body(ctx, "ana", ev.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	for what, c := range map[string]struct {
		ev   Event
		want bool
	}{
		"passed": {old[0], false}, "awaited": {again[0], true}, "beside it": {again[1], true}, "today's": {today, true},
		"late, stored long ago": {late[0], false}, "late, stored now": {late[1], true},
	} {
		if kept(c.ev) != c.want {
			t.Errorf("%s: kept %v, want %v", what, !c.want, c.want)
		}
	}
	if n := w.count(`SELECT count(*) FROM pg_class WHERE relname IN ($1, $2)`,
		"messages_"+gone.UTC().Format("20060102"), "deliveries_"+gone.UTC().Format("20060102")); n != 0 {
		t.Errorf("%d tables of the passed day are left", n)
	}
	if _, err := w.store.Delivery(ctx, "ana", e.ID, old[0].ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("the log of the passed day: %v", err)
	}
	w.finish(e)
	w.must(w.store.prune(ctx, now.AddDate(0, 0, -30)))
	if kept(again[0]) {
		t.Error("what is no longer awaited stays")
	}
}

// An event whose body is gone must not be looked for for ever.
func TestAnEventThatIsNoLongerKeptIsGivenUp(t *testing.T) {
	w := newWorld(t)
	e := w.create("ana", "https://example.com/")
	ev := anEvent("ana", "a")
	w.fan(ev)
	w.must(asOperator(t.Context(), w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM webhook.messages`)
		return err
	}))
	w.run(quick)
	w.until("it is given up", func() bool { return w.delivery(e, ev.ID).State == Failed })
}
