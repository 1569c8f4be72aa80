package daypart_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg/daypart"
	"github.com/waybillhq/waybill/pg/pgtest"
)

var (
	things = daypart.Table{Schema: "store", Name: "things"}
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func TestEventsLandInThePartitionOfTheirDay(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, noon.AddDate(0, 0, 2))
	for at, want := range map[time.Time]string{
		noon: "things_20260301",
		time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC):                     "things_20260301",
		time.Date(2026, 3, 1, 23, 59, 59, 999e6, time.UTC):              "things_20260301",
		time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC):                     "things_20260302",
		time.Date(2026, 3, 3, 23, 59, 59, 999e6, time.UTC):              "things_20260303",
		time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC):                     "things_default",
		time.Date(2026, 2, 28, 23, 59, 59, 999e6, time.UTC):             "things_default",
		time.Date(2026, 3, 2, 1, 0, 0, 0, time.FixedZone("east", 7200)): "things_20260301",
	} {
		for _, id := range []uuid.UUID{event.IDFloor(at), event.ForeignID("x", "1", at)} {
			if got := insert(t, db, id); got != want {
				t.Errorf("%s at %s went to %s, want %s", id, at, got, want)
			}
		}
	}
}

func TestRowsOfTheDefaultPartitionMoveToTheirNewDay(t *testing.T) {
	db := store(t)
	early := event.IDFloor(noon)
	other := event.IDFloor(noon.AddDate(0, 1, 0))
	for _, id := range []uuid.UUID{early, other} {
		if got := insert(t, db, id); got != "things_default" {
			t.Fatalf("went to %s", got)
		}
	}
	ensure(t, db, noon, noon)
	if got := where(t, db, early); got != "things_20260301" {
		t.Errorf("row of the day stayed in %s", got)
	}
	if got := where(t, db, other); got != "things_default" {
		t.Errorf("row of another day went to %s", got)
	}
	if _, err := db.Exec(t.Context(), "INSERT INTO store.things VALUES ($1)", early); err == nil {
		t.Error("the primary key forgot a moved row")
	}
}

// Whoever keeps a detached day must not be without partitions a week later.
func TestADayThatCannotBeMadeHoldsUpNoOther(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, noon)
	if _, err := db.Exec(t.Context(), "ALTER TABLE store.things DETACH PARTITION store.things_20260301"); err != nil {
		t.Fatal(err)
	}
	if err := daypart.Ensure(t.Context(), db, things, noon, noon.AddDate(0, 0, 2)); err == nil {
		t.Error("the day that could not be made was not told")
	}
	if got := insert(t, db, event.IDFloor(noon.AddDate(0, 0, 2))); got != "things_20260303" {
		t.Errorf("went to %s", got)
	}
}

func TestManyProcessesMayEnsureAtOnceWhileOthersWrite(t *testing.T) {
	db := store(t)
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			if i%2 == 0 {
				ensure(t, db, noon, noon.AddDate(0, 0, 5))
				return
			}
			for n := range 60 {
				id := event.ForeignID("w", uuid.NewString(), noon.Add(time.Duration(n)*2*time.Hour))
				if err := insertAgain(t.Context(), db, id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var rows, astray int
	err := db.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE tableoid = 'store.things_default'::regclass)
		FROM store.things`).Scan(&rows, &astray)
	if err != nil || rows != 180 || astray != 0 {
		t.Errorf("%d rows, %d in the default partition, %v; want 180, 0", rows, astray, err)
	}
}

// A reader holding the default partition must cost Ensure an error, not the
// writers their progress.
func TestALongTransactionDoesNotStopWriters(t *testing.T) {
	db := store(t)
	ensure(t, db, noon, noon)
	hold, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := hold.Exec(t.Context(), "SELECT count(*) FROM store.things"); err != nil {
		t.Fatal(err)
	}
	slowest := func() (most time.Duration) {
		failed := make(chan error, 1)
		go func() { failed <- daypart.Ensure(t.Context(), db, things, noon, noon.AddDate(0, 0, 1)) }()
		for i := range 20 {
			start := time.Now()
			insert(t, db, event.ForeignID("w", uuid.NewString(), noon.Add(time.Duration(i)*time.Minute)))
			most = max(most, time.Since(start))
		}
		if err := <-failed; err == nil {
			t.Fatal("Ensure got a lock that was held")
		}
		return most
	}
	// Who waits for Ensure waits for as long as it does. A slow machine may
	// stand still by itself, but not each time.
	for late := time.Now().Add(time.Minute); ; {
		most := slowest()
		if most < daypart.LockTimeout/2 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("a writer waited %s each time", most)
		}
	}
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	ensure(t, db, noon, noon.AddDate(0, 0, 1))
}

func TestEnsureOfATableWithoutDefaultPartition(t *testing.T) {
	db := store(t)
	if _, err := db.Exec(t.Context(), "DROP TABLE store.things_default"); err != nil {
		t.Fatal(err)
	}
	ensure(t, db, noon, noon)
	if got := insert(t, db, event.IDFloor(noon)); got != "things_20260301" {
		t.Errorf("went to %s", got)
	}
}

func ensure(t *testing.T, db *pgxpool.Pool, from, to time.Time) {
	t.Helper()
	for range 2 {
		if err := daypart.Ensure(t.Context(), db, things, from, to); err != nil {
			t.Error(err)
		}
	}
}

func insert(t *testing.T, db *pgxpool.Pool, id uuid.UUID) (partition string) {
	t.Helper()
	err := db.QueryRow(t.Context(), "INSERT INTO store.things VALUES ($1) RETURNING tableoid::regclass::text", id).Scan(&partition)
	if err != nil {
		t.Fatal(err)
	}
	return trim(partition)
}

func where(t *testing.T, db *pgxpool.Pool, id uuid.UUID) (partition string) {
	t.Helper()
	err := db.QueryRow(t.Context(), "SELECT tableoid::regclass::text FROM store.things WHERE id = $1", id).Scan(&partition)
	if err != nil {
		t.Fatal(err)
	}
	return trim(partition)
}

func trim(partition string) string { return partition[len("store."):] }

// store is a database with an empty partitioned table of things.
func store(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db, err := pgxpool.New(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := db.Exec(t.Context(), `CREATE SCHEMA store;
		CREATE TABLE store.things (id uuid PRIMARY KEY, serial bigint GENERATED ALWAYS AS IDENTITY,
			at timestamptz DEFAULT now()) PARTITION BY RANGE (id);
		CREATE INDEX ON store.things (at);
		CREATE TABLE store.things_default PARTITION OF store.things DEFAULT`); err != nil {
		t.Fatal(err)
	}
	return db
}

// insertAgain inserts as a writer has to when its day's partition appears
// beneath it: refused once, it tries again.
func insertAgain(ctx context.Context, db *pgxpool.Pool, id uuid.UUID) error {
	_, err := db.Exec(ctx, "INSERT INTO store.things VALUES ($1)", id)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == checkViolation {
		_, err = db.Exec(ctx, "INSERT INTO store.things VALUES ($1)", id)
	}
	return err
}

const checkViolation = "23514"
