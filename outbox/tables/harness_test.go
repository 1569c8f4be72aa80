package tables_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// first is the first day of these tests' outboxes, today their last one.
var (
	first = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	today = first.AddDate(0, 0, 6)
	now   = today.Add(15 * time.Hour)
)

const schemaText = `{"type":"record","name":"Noted","namespace":"test","fields":[{"name":"n","type":"long"}]}`

// world is a database with an outbox of the days first..today and a folder for
// its archive.
type world struct {
	t   testing.TB
	dsn string
	db  *pgxpool.Pool
	dir string
	log syncBuffer
}

// newWorld makes one, whose test then runs beside others: they wait more than
// they work.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, dsn: pgtest.Migrated(t, incident.Migration(), tables.Migration()), dir: filepath.Join(t.TempDir(), "archive")}
	w.db = w.pool()
	for _, name := range []string{"outbox_events", "outbox_published"} {
		must(t, daypart.Ensure(t.Context(), w.db, daypart.Table{Schema: "waybill", Name: name}, first, today))
	}
	w.exec(`INSERT INTO waybill.outbox_contracts (fingerprint, subject, schema_text) VALUES ($1, 'noted-test.Noted', $2)`,
		event.Fingerprint(schemaText), schemaText)
	return w
}

func (w *world) pool() *pgxpool.Pool {
	w.t.Helper()
	db, err := pg.Open(w.t.Context(), w.dsn, pg.Config{IdleInTransaction: -1})
	must(w.t, err)
	w.t.Cleanup(db.Close)
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

// config is of a retention whose clock stands at now.
func (w *world) config() tables.RetentionConfig {
	return tables.RetentionConfig{
		Dir: w.dir, Now: func() time.Time { return now }, Settle: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
}

func (w *world) retention() *tables.Retention { return tables.NewRetention(w.db, w.config()) }

// once makes a round in which nothing fails.
func (w *world) once() tables.Report {
	w.t.Helper()
	report, err := w.retention().Once(w.t.Context())
	must(w.t, err)
	return report
}

const insertEvent = `INSERT INTO waybill.outbox_events (id, topic, subject, source, type, time, tenant, sequence, correlation_id,
	causation_id, trace_parent, schema_fingerprint, body)
	VALUES ($1, 'noted', 'a', '/test', 'test.Noted', $2, 't', 1, '', '', '', $3, 'body')`

func insertArgs(id uuid.UUID) []any {
	at := event.IDTime(id)
	if at.Year() > 9999 {
		at = now
	}
	return []any{id, at, event.Fingerprint(schemaText)}
}

// event adds an event dated at, unmarked.
func (w *world) event(at time.Time) uuid.UUID {
	w.t.Helper()
	id := event.ForeignID("test", uuid.NewString(), at)
	w.exec(insertEvent, insertArgs(id)...)
	return id
}

// mark marks an event as published at.
func (w *world) mark(at time.Time, ids ...uuid.UUID) {
	w.t.Helper()
	for _, id := range ids {
		w.exec(`INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset) VALUES ($1, $2, 0, 0)`, id, at)
	}
}

// published adds n published events dated on day.
func (w *world) published(day time.Time, n int) (ids []uuid.UUID) {
	w.t.Helper()
	for i := range n {
		id := w.event(day.Add(time.Duration(i) * time.Second))
		w.mark(day.Add(time.Duration(i+1)*time.Second), id)
		ids = append(ids, id)
	}
	return ids
}

// days adds n published events to each day.
func (w *world) days(n int) (ids []uuid.UUID) {
	w.t.Helper()
	for d := first; !d.After(today); d = d.AddDate(0, 0, 1) {
		ids = append(ids, w.published(d, n)...)
	}
	return ids
}

// inTable are the ids of a table, in order.
func (w *world) inTable(table string) []uuid.UUID {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT id FROM waybill.`+table+` ORDER BY id`)
	must(w.t, err)
	defer rows.Close()
	var ids []uuid.UUID
	for rows.Next() {
		var id uuid.UUID
		must(w.t, rows.Scan(&id))
		ids = append(ids, id)
	}
	must(w.t, rows.Err())
	return ids
}

// inArchive are the ids in the archive's files, in order. Each file is whole.
func (w *world) inArchive() (ids []uuid.UUID) {
	w.t.Helper()
	paths, err := archive.List(w.dir)
	if err != nil {
		return nil
	}
	for _, path := range paths {
		_, err := archive.Verify(w.t.Context(), path)
		must(w.t, err)
	}
	a, err := archive.Open(w.dir)
	must(w.t, err)
	for e, err := range a.Events(uuid.Nil, uuid.Nil) {
		must(w.t, err)
		ids = append(ids, e.ID)
	}
	return ids
}

func (w *world) files() (names []string) {
	w.t.Helper()
	paths, err := archive.List(w.dir)
	if err != nil {
		return nil
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// nothingLost checks that every event is in the table or in the archive, and
// that none in the table lacks its mark.
func (w *world) nothingLost(all []uuid.UUID) {
	w.t.Helper()
	have := map[uuid.UUID]bool{}
	for _, id := range append(w.inTable("outbox_events"), w.inArchive()...) {
		have[id] = true
	}
	lost := 0
	for _, id := range all {
		if !have[id] {
			lost++
		}
	}
	if lost > 0 {
		w.t.Errorf("%d of %d events are neither in the table nor in the archive", lost, len(all))
	}
	if n := w.unmarked(w.t.Context()); n != 0 {
		w.t.Errorf("%d events stand without their marks: they would be published again", n)
	}
}

func (w *world) unmarked(ctx context.Context) (n int) {
	w.t.Helper()
	must(w.t, w.db.QueryRow(ctx, `SELECT count(*) FROM waybill.outbox_events e
		WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)`).Scan(&n))
	return n
}

// same compares sets of ids.
func same(t testing.TB, what string, got, want []uuid.UUID) {
	t.Helper()
	got, want = sorted(got), sorted(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d events, want %d", what, len(got), len(want))
	}
}

func sorted(ids []uuid.UUID) []uuid.UUID {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

func (w *world) partitions() (names []string) {
	w.t.Helper()
	for _, t := range []string{"outbox_events", "outbox_published"} {
		parts, err := daypart.Parts(w.t.Context(), w.db, daypart.Table{Schema: "waybill", Name: t})
		must(w.t, err)
		for _, p := range parts {
			names = append(names, p.Name)
		}
	}
	return names
}

// kept finds what the report says of something that stays.
func kept(r tables.Report, what string) string {
	for _, k := range r.Kept {
		if k.What == what {
			return k.Why
		}
	}
	return ""
}

func (w *world) incidents() (kinds []string) {
	w.t.Helper()
	seen, err := incident.List(w.t.Context(), w.db, time.Now().Add(-time.Hour), 100)
	must(w.t, err)
	for _, s := range seen {
		kinds = append(kinds, s.Kind+" of "+s.Subject)
	}
	return kinds
}

func label(day time.Time) string { return day.Format(time.DateOnly) }

func join[T any](list []T) string { return strings.Trim(fmt.Sprint(list), "[]") }

// syncBuffer is a log to look at.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// eventually waits for a state; the deadline is for a lost case.
func eventually(t testing.TB, claim string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not so: %s", claim)
		case <-tick.C:
		}
	}
}
