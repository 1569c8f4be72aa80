package consumer

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg/daypart"
)

// ofDay is the next movement of a key, as an event of some days ago.
func (w *world) ofDay(key string, days int) *kgo.Record {
	rec := w.record(key)
	id := event.ForeignID("test", fmt.Sprint(key, w.sent[key]), time.Now().AddDate(0, 0, -days))
	id[6] = id[6]&0x0f | 0x70 // version 7, or it would be made anew
	for i, h := range rec.Headers {
		if h.Key == event.HeaderID {
			rec.Headers[i].Value = []byte(id.String())
		}
	}
	return rec
}

// What is old and was never read is handled; what is old and read again is
// known while its claim is there, and left to a person once it may be gone.
func TestAnEventOlderThanTheInboxIsNotHandledTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.publish(w.ofDay("a", 30), w.ofDay("b", 30), w.ofDay("b", 1))
	m := w.start(keep)
	w.settled()
	w.until("saved", func() bool { return w.next() == 3 })
	m.end(t)
	again := func() {
		w.exec(`UPDATE waybill.watermark SET next_offset = 0`)
		m = w.start(keep)
		w.until("read again", func() bool { return w.next() == 3 })
	}
	again()
	m.end(t)
	if k := w.parked(); len(k) > 0 {
		t.Errorf("its claim is there, and it was parked: %+v", k)
	}
	w.exec(`DELETE FROM waybill.inbox WHERE event_id < $1`, event.IDFloor(time.Now().AddDate(0, 0, -20)))
	again()
	w.until("they are parked", func() bool { return len(w.parked()) == 2 })
	k := w.deadKeys(DeadFilter{})
	if len(k) != 2 || k[0].Error != ErrForgotten.Error() || k[0].Class != classForgotten {
		t.Errorf("dead: %+v", k)
	}
	w.inOrder() // nothing twice, and nothing of later days is lost
	// A person knows that a's was not handled after all.
	w.exec(`DELETE FROM effect WHERE key = 'a'`)
	w.exec(`DELETE FROM waybill.parked WHERE key = 'b'`)
	w.redrive(DeadFilter{})
	w.settled()
}

func TestOldDaysLeaveTheInbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	now := time.Now()
	table := daypart.Table{Schema: "waybill", Name: "inbox"}
	if err := daypart.Ensure(t.Context(), w.db, table, now.AddDate(0, 0, -12), now.AddDate(0, 0, -9)); err != nil {
		t.Fatal(err)
	}
	claim := func(days int, handled time.Time) uuid.UUID {
		id := event.ForeignID("test", handled.String(), now.AddDate(0, 0, -days))
		w.exec(`INSERT INTO waybill.inbox (event_id, group_name, handled_at) VALUES ($1, 'g', $2)`, id, handled)
		return id
	}
	claim(12, now.AddDate(0, 0, -11))
	claim(10, now.AddDate(0, 0, -9))
	claim(40, now.AddDate(0, 0, -30)) // in the default partition
	kept := []uuid.UUID{
		claim(11, now.Add(-time.Hour)), // handled late
		claim(40, now.AddDate(0, 0, -3)),
		claim(1, now.AddDate(0, 0, -1)),
	}
	g := New(Deps{DB: w.db}, Config{Group: w.group, Logger: slog.New(slog.DiscardHandler)})
	s := newSession(g, t.Context())
	left := func() []uuid.UUID {
		rows, err := w.db.Query(t.Context(), `SELECT event_id FROM waybill.inbox`)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	// Another group that needs them longer.
	w.exec(`INSERT INTO waybill.owner (group_name, topic, partition, epoch, member, inbox_keep) VALUES ('long', 't', 0, 1, 'm', '60 days')`)
	if err := s.prune(t.Context(), now); err != nil || len(left()) != 6 {
		t.Errorf("%d claims left of 6 that another group needs, %v", len(left()), err)
	}
	w.exec(`DELETE FROM waybill.owner`)
	w.until("pruned", func() bool {
		if err := s.prune(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		return len(left()) == len(kept)
	})
	for _, id := range left() {
		if !slices.Contains(kept, id) {
			t.Errorf("%s is left", id)
		}
	}
	parts, err := daypart.Parts(t.Context(), w.db, table)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if age := daypart.Day(now).Sub(p.Day); age > 8*24*time.Hour && age != 11*24*time.Hour {
			t.Errorf("the table of %s is left", p.Day)
		}
	}
}
