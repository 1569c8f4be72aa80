package outbox

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// Days of history must cost the count nothing, also while the planner knows
// nothing of them.
func TestCountingTheBacklogReadsNoHistory(t *testing.T) {
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := pg.Migrate(t.Context(), db, tables.Migration()); err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	for _, name := range []string{"outbox_events", "outbox_published"} {
		if err := daypart.Ensure(t.Context(), db, daypart.Table{Schema: "waybill", Name: name}, today.AddDate(0, 0, -3), today); err != nil {
			t.Fatal(err)
		}
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	number := func(sql string) (n int64) {
		t.Helper()
		if err := db.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	write := func(day time.Time, n int) {
		exec(`INSERT INTO waybill.outbox_events
			SELECT (lpad(to_hex($1::bigint + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
				'things', 'k', '/test', 'Thing', now(), 't1', 0, '', '', '', 1, 'some body of some length, as bodies are'
			FROM generate_series(1, $2::int) n`, day.UnixMilli(), n)
	}
	for day := -3; day <= 0; day++ {
		write(today.AddDate(0, 0, day), 25_000)
	}
	exec(`INSERT INTO waybill.outbox_published SELECT id, now(), 0, 0 FROM waybill.outbox_events`)
	exec(`SELECT brin_summarize_new_values(c.oid) FROM pg_class c WHERE relname LIKE 'outbox\_events%xid%' AND relkind = 'i'`)
	below := number(`SELECT pg_current_xact_id()::text::bigint`)
	write(today.Add(12*time.Hour), 10)

	b, err := ReadBacklog(t.Context(), db, below, 100, 0)
	if err != nil || b.Events != 10 {
		t.Fatalf("%+v %v", b, err)
	}
	pages := number(`SELECT sum(pg_relation_size(inhrelid)) / 8192 FROM pg_inherits WHERE inhparent = 'waybill.outbox_events'::regclass`)
	if read := pagesRead(t, db, below); read > pages/8 {
		t.Errorf("read %d pages, all events have %d", read, pages)
	}
}

func pagesRead(t *testing.T, db *pgxpool.Pool, below int64) int64 {
	t.Helper()
	var text []byte
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), fmt.Sprintf(planForBacklog, 0)); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+countBacklog, pgx.QueryExecModeExec, below, 100).Scan(&text)
	})
	if err != nil {
		t.Fatal(err)
	}
	var plan []struct {
		Plan struct {
			Hit  int64 `json:"Shared Hit Blocks"`
			Read int64 `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	if p := plan[0].Plan; p.Hit+p.Read > 0 {
		return p.Hit + p.Read
	}
	t.Fatalf("nothing was read: %s", text)
	return 0
}

// What a gate adds to a write.
func BenchmarkOpenGate(b *testing.B) {
	g := &Gate{}
	g.state.Store(&GateState{})
	b.ReportAllocs()
	for b.Loop() {
		if g.refusal() != nil {
			b.Fatal("closed")
		}
	}
}

func BenchmarkClosedGate(b *testing.B) {
	g := &Gate{}
	g.state.Store(&GateState{Closed: &OverloadError{}})
	b.ReportAllocs()
	for b.Loop() {
		if g.refusal() == nil {
			b.Fatal("open")
		}
	}
}
