package incident_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := pg.Migrate(t.Context(), db, incident.Migration()); err != nil {
		t.Fatal(err)
	}
	return db
}

func record(t *testing.T, db incident.DB, in incident.Incident) {
	t.Helper()
	if err := incident.Record(t.Context(), db, in); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, db incident.Reader, since time.Time, limit int) []incident.Seen {
	t.Helper()
	seen, err := incident.List(t.Context(), db, since, limit)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func exec(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

var lost = incident.Incident{
	Part: "relay", Kind: "slot lost", Subject: "s", Text: "made anew",
	Detail: map[string]any{"wal": 12.0},
}

func TestRepeatsWithinAnHourAreCountedNotListed(t *testing.T) {
	db := database(t)
	record(t, db, lost)
	again := lost
	again.Text, again.Detail = "made anew, again", nil
	record(t, db, again)
	other := lost
	other.Subject = "another"
	record(t, db, other)
	seen := list(t, db, time.Time{}, 10)
	if len(seen) != 2 || seen[0].Subject != "another" || seen[0].Count != 1 || seen[0].Detail["wal"] != 12.0 {
		t.Fatalf("%+v", seen)
	}
	if s := seen[1]; s.Count != 2 || s.Text != again.Text || len(s.Detail) != 0 || s.LastAt.Before(s.At) {
		t.Errorf("the repeat: %+v", s)
	}
}

func TestAfterAnHourItIsAnother(t *testing.T) {
	db := database(t)
	record(t, db, lost)
	exec(t, db, `UPDATE waybill.incidents SET at = at - interval '3 hours', last_at = last_at - interval '2 hours'`)
	record(t, db, lost)
	record(t, db, lost)
	seen := list(t, db, time.Time{}, 10)
	if len(seen) != 2 || seen[0].Count != 2 || seen[1].Count != 1 {
		t.Fatalf("%+v", seen)
	}
	if recent := list(t, db, time.Now().Add(-time.Hour), 10); len(recent) != 1 || recent[0].ID != seen[0].ID {
		t.Errorf("since an hour ago: %+v", recent)
	}
	if first := list(t, db, time.Time{}, 1); len(first) != 1 || first[0].ID != seen[0].ID {
		t.Errorf("the latest one: %+v", first)
	}
}

// Whatever goes on for days is one incident, seen again and again.
func TestTheHourIsOfTheLastTime(t *testing.T) {
	db := database(t)
	for range 3 {
		record(t, db, lost)
		exec(t, db, `UPDATE waybill.incidents SET at = at - interval '50 min', last_at = last_at - interval '50 min'`)
	}
	if seen := list(t, db, time.Time{}, 10); len(seen) != 1 || seen[0].Count != 3 {
		t.Errorf("%+v", seen)
	}
}

func TestProcessesThatSeeItAtOnceCountTogether(t *testing.T) {
	db := database(t)
	record(t, db, lost)
	exec(t, db, `UPDATE waybill.incidents SET last_at = last_at - interval '2 hours'`)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if err := incident.Record(t.Context(), db, lost); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if seen := list(t, db, time.Time{}, 20); len(seen) != 2 || seen[0].Count != 12 {
		t.Errorf("%+v", seen)
	}
}

func TestTheTableIsBounded(t *testing.T) {
	db := database(t)
	exec(t, db, `INSERT INTO waybill.incidents (part, kind, subject, text)
		SELECT 'p', 'k', n::text, '' FROM generate_series(1, 10050) n`)
	record(t, db, lost)
	seen := list(t, db, time.Time{}, math.MaxInt32)
	if len(seen) != 10_000 || seen[0].Subject != "s" || seen[len(seen)-1].Subject != "52" {
		t.Fatalf("%d rows, from %+v to %+v", len(seen), seen[len(seen)-1], seen[0])
	}
	exec(t, db, `UPDATE waybill.incidents SET last_at = now() - interval '91 days' WHERE subject < '9'`)
	record(t, db, incident.Incident{Subject: "new"})
	for _, s := range list(t, db, time.Time{}, math.MaxInt32) {
		if s.LastAt.Before(time.Now().AddDate(0, 0, -90)) {
			t.Fatalf("kept: %+v", s)
		}
	}
}

// What began first may be going on: a flood of others must not drive it out.
func TestTheBoundIsOfTheLastTime(t *testing.T) {
	db := database(t)
	record(t, db, lost)
	exec(t, db, `INSERT INTO waybill.incidents (part, kind, subject, text, last_at)
		SELECT 'p', 'k', n::text, '', now() - interval '1 minute' FROM generate_series(1, 10050) n`)
	record(t, db, lost)
	record(t, db, incident.Incident{Subject: "new"})
	seen := list(t, db, time.Time{}, math.MaxInt32)
	if len(seen) != 10_000 || seen[1].Subject != lost.Subject || seen[1].Count != 2 {
		t.Fatalf("%d rows, first %+v", len(seen), seen[:2])
	}
}

func TestNothingIsLostForItsBytes(t *testing.T) {
	db := database(t)
	record(t, db, incident.Incident{
		Part: "p\x00", Kind: "k\xff", Subject: strings.Repeat("é", 3000), Text: strings.Repeat("x", 1<<20),
		Detail: map[string]any{"nul": "a\x00b", "odd": "\xff"},
	})
	record(t, db, incident.Incident{Kind: "large", Detail: map[string]any{"bulk": strings.Repeat("x", 1<<20)}})
	record(t, db, incident.Incident{Kind: "no JSON", Detail: map[string]any{"f": func() {}}})
	seen := list(t, db, time.Time{}, 10)
	if len(seen) != 3 {
		t.Fatalf("%d of 3", len(seen))
	}
	if s := seen[2]; len(s.Subject) != 512 || len(s.Text) != 8<<10 || s.Detail["nul"] != "a\ufffdb" {
		t.Errorf("subject %d bytes, text %d bytes, detail %v", len(s.Subject), len(s.Text), s.Detail)
	}
	for _, s := range seen[:2] {
		if _, said := s.Detail["detail left out"]; !said {
			t.Errorf("%s: %v", s.Kind, s.Detail)
		}
	}
}

func TestAnIncidentMayShareATransactionsFate(t *testing.T) {
	db := database(t)
	undo := errors.New("undo")
	for _, fate := range []error{undo, nil} {
		err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
			record(t, tx, lost)
			return fate
		})
		if !errors.Is(err, fate) {
			t.Fatal(err)
		}
	}
	if seen := list(t, db, time.Time{}, 10); len(seen) != 1 || seen[0].Count != 1 {
		t.Errorf("%+v", seen)
	}
}

func TestWithoutTheTableItSaysSo(t *testing.T) {
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := incident.Record(t.Context(), db, lost); err == nil || !strings.Contains(err.Error(), "slot lost of relay") {
		t.Error(err)
	}
	if _, err := incident.List(t.Context(), db, time.Time{}, 1); err == nil {
		t.Error("listed")
	}
}
