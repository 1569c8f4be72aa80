package wal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/pg/wal"
)

// slotted is a database with a table, its publication and a slot.
func slotted(t *testing.T) (db *pgx.Conn, cfg wal.Config) {
	t.Helper()
	dsn := pgtest.New(t)
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	cfg = wal.Config{Conn: &db.Config().Config, Slot: "slot_" + db.Config().Database, Publication: "things"}
	for _, sql := range []string{
		"CREATE TABLE thing (n int PRIMARY KEY, v text)",
		"CREATE PUBLICATION things FOR TABLE thing",
		"SELECT pg_create_logical_replication_slot('" + cfg.Slot + "', 'pgoutput')",
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return db, cfg
}

func open(t *testing.T, cfg wal.Config) *wal.Stream {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		s, err := wal.Open(t.Context(), cfg)
		if err == nil {
			return s
		}
		if !errors.Is(err, wal.ErrSlotInUse) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// until reads to the commit of the nth transaction.
func until(t *testing.T, s *wal.Stream, n int) *heard {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	h := &heard{}
	d := wal.NewDecoder(h)
	for len(h.commits) < n {
		f, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if f.Data == nil {
			continue
		}
		if err := d.Decode(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// What was confirmed just before Close is not sent again, though the server
// has much more to send at that moment.
func TestCloseTellsTheLastPosition(t *testing.T) {
	db, cfg := slotted(t)
	const n = 50
	for i := range n {
		if _, err := db.Exec(t.Context(), "INSERT INTO thing VALUES ($1, repeat('x', 100000))", i); err != nil {
			t.Fatal(err)
		}
	}
	cfg.StatusInterval = time.Hour // Close alone tells
	for i := range 20 {
		s := open(t, cfg)
		h := until(t, s, 1)
		if got := h.rows[0][0].Data; len(got) != 4 || int(got[3]) != i {
			t.Fatalf("round %d begins at row %v", i, got)
		}
		s.Confirm(h.commits[0])
		began := time.Now()
		s.Close(t.Context())
		if took := time.Since(began); took > time.Minute {
			t.Errorf("close took %s", took)
		}
	}
}

func TestSlotIsReadByOneAndMissedByName(t *testing.T) {
	_, cfg := slotted(t)
	s := open(t, cfg)
	defer s.Close(context.Background())
	if _, err := wal.Open(t.Context(), cfg); !errors.Is(err, wal.ErrSlotInUse) {
		t.Errorf("error %v", err)
	}
	cfg.Slot = "no_such_slot"
	if _, err := wal.Open(t.Context(), cfg); !errors.Is(err, wal.ErrSlotMissing) {
		t.Errorf("error %v", err)
	}
}

func TestMissingPublicationIsTold(t *testing.T) {
	db, cfg := slotted(t)
	for _, sql := range []string{"DROP PUBLICATION things", "INSERT INTO thing VALUES (1)", "CREATE PUBLICATION things FOR TABLE thing"} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, cfg)
	defer s.Close(context.Background())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		f, err := s.Next(ctx)
		if errors.Is(err, wal.ErrPublicationMissing) {
			return
		}
		if err != nil || f.Data != nil && f.Data[0] == 'C' {
			t.Fatalf("read past it, error %v", err)
		}
	}
}

// The server folds and splits the list of names it is given, and takes no slot
// whose name begins with a digit, unless they are
// quoted: a publication of such a name would never be found, and the slot be
// taken for unusable.
func TestSlotAndPublicationOfAnyName(t *testing.T) {
	db, cfg := slotted(t)
	cfg.Publication = `Things, "all"; it's`
	for _, sql := range []string{"CREATE PUBLICATION " + pgx.Identifier{cfg.Publication}.Sanitize() + " FOR TABLE thing", "INSERT INTO thing VALUES (1)"} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Slot = "0_" + cfg.Slot
	if _, err := db.Exec(t.Context(), "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", cfg.Slot); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), "INSERT INTO thing VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	s := open(t, cfg)
	defer s.Close(context.Background())
	if h := until(t, s, 1); len(h.rows) != 1 {
		t.Errorf("rows %v", h.rows)
	}
}
