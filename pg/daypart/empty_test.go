package daypart_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg/daypart"
)

// tomorrow is a day that writers of these tests use while noon's is emptied.
var tomorrow = noon.AddDate(0, 0, 1)

// begin opens a transaction that ran statements and stays open until end.
func begin(t *testing.T, db *pgxpool.Pool, statements ...string) (end func()) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			_ = tx.Commit(context.WithoutCancel(t.Context()))
		}
		ended = true
	}
	t.Cleanup(end)
	for _, sql := range statements {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return end
}

// partOf is the partition of day.
func partOf(t *testing.T, db *pgxpool.Pool, day time.Time) daypart.Part {
	t.Helper()
	parts, err := daypart.Parts(t.Context(), db, things)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if p.Day.Equal(daypart.Day(day)) {
			return p
		}
	}
	t.Fatalf("no partition of %s in %v", day, parts)
	return daypart.Part{}
}

func unchecked(context.Context, pgx.Tx) error { return nil }

func empty(t *testing.T, db *pgxpool.Pool, day time.Time) error {
	t.Helper()
	return daypart.Empty(t.Context(), db, []daypart.Table{partOf(t, db, day).Table}, unchecked)
}

func count(t *testing.T, db *pgxpool.Pool) (rows int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM store.things").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// insertMany is what a writer does meanwhile. It fails the test if one waits:
// the deadline is for a lost case, not for a slow machine.
func insertMany(t *testing.T, db *pgxpool.Pool, day time.Time) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 50 {
		if err := insertAgain(ctx, db, event.ForeignID("w", uuid.NewString(), day)); err != nil {
			t.Fatalf("a writer was held up: %v", err)
		}
	}
}

func TestPartsAreThoseOfOneDayWhateverTheirNames(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, noon.AddDate(0, 0, 2))
	if _, err := db.Exec(t.Context(), `ALTER TABLE store.things_20260302 RENAME TO old;
		CREATE TABLE store.april PARTITION OF store.things FOR VALUES FROM ('`+daypart.Floor(noon.AddDate(0, 1, 0)).String()+`')
			TO ('`+daypart.Floor(noon.AddDate(0, 2, 0)).String()+`')`); err != nil {
		t.Fatal(err)
	}
	parts, err := daypart.Parts(t.Context(), db, things)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, p := range parts {
		names = append(names, p.Name)
		if want := daypart.Day(noon).AddDate(0, 0, i); !p.Day.Equal(want) {
			t.Errorf("%s is of %s, want %s", p.Name, p.Day, want)
		}
		if p.Ceiling() != daypart.Floor(p.Day.Add(24*time.Hour)) || p.Floor() != event.IDFloor(p.Day) {
			t.Errorf("%s goes from %s to %s", p.Name, p.Floor(), p.Ceiling())
		}
	}
	if got := strings.Join(names, " "); got != "things_20260301 old things_20260303" {
		t.Errorf("parts %s", got)
	}
}

func TestEmptyingIsOfAllPartsOrNone(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, tomorrow)
	insert(t, db, event.IDFloor(noon))
	insert(t, db, event.IDFloor(tomorrow))
	parts := []daypart.Table{partOf(t, db, noon).Table, partOf(t, db, tomorrow).Table}
	refusal := errors.New("not yet")
	err := daypart.Empty(t.Context(), db, parts, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE TABLE store.noted ()"); err != nil {
			return err
		}
		return refusal
	})
	if !errors.Is(err, refusal) || count(t, db) != 2 {
		t.Fatalf("%v, %d rows left; want the check's refusal and 2", err, count(t, db))
	}
	// What the check writes is part of it: the name is free again.
	err = daypart.Empty(t.Context(), db, parts, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "CREATE TABLE store.noted ()")
		return err
	})
	if err != nil || count(t, db) != 0 {
		t.Fatalf("%v, %d rows left", err, count(t, db))
	}
}

// Rows cannot come between the look and the emptying.
func TestNobodyWritesToADayWhileItIsChecked(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, tomorrow)
	late := make(chan error, 1)
	err := daypart.Empty(t.Context(), db, []daypart.Table{partOf(t, db, noon).Table}, func(ctx context.Context, tx pgx.Tx) error {
		go func() { late <- insertAgain(t.Context(), db, event.IDFloor(noon)) }()
		for waiting := false; !waiting; {
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted
				AND relation = 'store.things_20260301'::regclass)`).Scan(&waiting); err != nil {
				return err
			}
		}
		insertMany(t, db, tomorrow) // others go on
		if n := count(t, db); n != 50 {
			t.Errorf("a reader of all days sees %d rows, want the other day's 50", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	if n := count(t, db); n != 51 {
		t.Errorf("%d rows, want 51: the late one must outlive the emptying it waited for", n)
	}
}

func TestADayInUseIsNotEmptied(t *testing.T) {
	for name, sql := range map[string]string{
		"written to": "INSERT INTO store.things VALUES ('" + event.IDFloor(noon.Add(time.Second)).String() + "')",
		"read":       "SELECT count(*) FROM store.things",
	} {
		t.Run(name, func(t *testing.T) {
			db := store(t)
			ensure(t, db, noon, tomorrow)
			insert(t, db, event.IDFloor(noon))
			end := begin(t, db, sql)
			if err := empty(t, db, noon); !errors.Is(err, daypart.ErrBusy) {
				t.Errorf("%v, want ErrBusy", err)
			}
			insertMany(t, db, tomorrow)
			insertMany(t, db, noon) // not even they are held up
			end()
			if err := empty(t, db, noon); err != nil {
				t.Error(err)
			}
		})
	}
}

// A held snapshot keeps DELETE and VACUUM from giving back anything.
func TestAHeldSnapshotDoesNotKeepTheSpace(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, noon)
	insertMany(t, db, noon)
	begin(t, db, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT pg_current_xact_id()")
	if err := empty(t, db, noon); err != nil {
		t.Fatal(err)
	}
	var bytes int64
	if err := db.QueryRow(t.Context(), "SELECT pg_relation_size('store.things_20260301')").Scan(&bytes); err != nil || bytes != 0 {
		t.Errorf("%d bytes left, %v", bytes, err)
	}
}

func TestDroppingTakesOnlyWhatIsEmpty(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, tomorrow)
	insert(t, db, event.IDFloor(noon))
	p := partOf(t, db, noon)
	if err := daypart.Drop(t.Context(), db, things, p); !errors.Is(err, daypart.ErrNotEmpty) {
		t.Errorf("%v, want ErrNotEmpty", err)
	}
	if err := empty(t, db, noon); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is gone
		if err := daypart.Drop(t.Context(), db, things, p); err != nil {
			t.Error(err)
		}
	}
	if got := insert(t, db, event.IDFloor(noon)); got != "things_default" {
		t.Errorf("a late row went to %s", got)
	}
}

func TestDroppingLeavesATableThatIsHeldAlone(t *testing.T) {
	for name, sql := range map[string]string{
		"by a writer of another day": "INSERT INTO store.things VALUES ('" + event.IDFloor(tomorrow).String() + "')",
		"by a writer of no day":      "INSERT INTO store.things VALUES ('" + event.IDFloor(noon.AddDate(0, 3, 0)).String() + "')",
		"by a reader":                "SELECT count(*) FROM store.things",
	} {
		t.Run(name, func(t *testing.T) {
			db := store(t)
			ensure(t, db, noon, tomorrow)
			end := begin(t, db, sql)
			p := partOf(t, db, noon)
			dropped := make(chan error, 1)
			go func() { dropped <- daypart.Drop(t.Context(), db, things, p) }()
			insertMany(t, db, tomorrow)
			if err := <-dropped; !errors.Is(err, daypart.ErrBusy) {
				t.Errorf("%v, want ErrBusy", err)
			}
			insertMany(t, db, tomorrow)
			end()
			if err := daypart.Drop(t.Context(), db, things, p); err != nil {
				t.Error(err)
			}
		})
	}
}

// Why days are not detached: if this ever passes, they can be.
func TestTheServerDetachesNothingConcurrentlyBesideADefaultPartition(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, noon)
	_, err := db.Exec(t.Context(), "ALTER TABLE store.things DETACH PARTITION store.things_20260301 CONCURRENTLY")
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, "default partition") {
		t.Errorf("%v", err)
	}
}

// Rows that move from the default partition to their day are inserted there. A
// relay that reads inserts must not hear of them again.
func TestRowsThatMoveAreNotPublishedAgain(t *testing.T) {
	db := store(t)
	if _, err := db.Exec(t.Context(), `CREATE PUBLICATION told FOR TABLE store.things
		WITH (publish = 'insert', publish_via_partition_root = true)`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `SELECT pg_create_logical_replication_slot(current_database() || '_told', 'pgoutput')`); err != nil {
		t.Fatal(err)
	}
	insert(t, db, event.IDFloor(noon)) // into the default partition
	ensure(t, db, noon, tomorrow)
	if got := where(t, db, event.IDFloor(noon)); got != "things_20260301" {
		t.Fatalf("the row is in %s", got)
	}
	insert(t, db, event.IDFloor(tomorrow))
	if err := empty(t, db, noon); err != nil {
		t.Fatal(err)
	}
	var inserts, truncates int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE get_byte(data, 0) = ascii('I')),
		count(*) FILTER (WHERE get_byte(data, 0) = ascii('T'))
		FROM pg_logical_slot_get_binary_changes(current_database() || '_told', NULL, NULL,
			'proto_version', '1', 'publication_names', 'told')`).Scan(&inserts, &truncates); err != nil {
		t.Fatal(err)
	}
	if inserts != 2 || truncates != 0 {
		t.Errorf("%d inserts and %d truncates are published, want the 2 inserts of 2 events", inserts, truncates)
	}
}
