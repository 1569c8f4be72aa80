package archive_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

const (
	label      = "2026-03-01"
	schemaText = `{"type":"record","name":"Noted","namespace":"test","fields":[{"name":"n","type":"long"}]}`
)

// source is the day's partition.
var source = archive.Source{
	Table: daypart.Table{Schema: "waybill", Name: "outbox_events_20260301"},
	Label: label, From: daypart.Floor(day), To: daypart.Floor(day.AddDate(0, 0, 1)),
}

// world is a database with an outbox and a folder for its archive.
type world struct {
	t   testing.TB
	db  *pgxpool.Pool
	dir string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	must(t, err)
	t.Cleanup(db.Close)
	must(t, pg.Migrate(t.Context(), db, tables.Migration()))
	for _, name := range []string{"outbox_events", "outbox_published"} {
		must(t, daypart.Ensure(t.Context(), db, daypart.Table{Schema: "waybill", Name: name}, day, day))
	}
	w := &world{t: t, db: db, dir: filepath.Join(t.TempDir(), "archive")}
	w.exec(`INSERT INTO waybill.outbox_contracts (fingerprint, subject, schema_text) VALUES ($1, 'noted-test.Noted', $2)`,
		event.Fingerprint(schemaText), schemaText)
	return w
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

// fill adds n events spread over the day, the first of them the salt'th
// millisecond in, each with a mark.
func (w *world) fill(salt, n, bodyBytes int) {
	w.t.Helper()
	w.exec(`INSERT INTO waybill.outbox_events (id, topic, subject, source, type, time, tenant, sequence, correlation_id,
			causation_id, trace_parent, schema_fingerprint, body)
		SELECT (lpad(to_hex($1::bigint + $2 + i * (80000000 / $3)), 12, '0') || '7000' || '8000' || lpad(to_hex(i), 12, '0'))::uuid,
			'noted', 'a' || i, '/test', 'test.Noted', to_timestamp(($1 + i) / 1000.0), 't', i, 'c', 'd', '', $4,
			substr(decode(repeat(md5(i::text), $5 / 16 + 1), 'hex'), 1, $5)
		FROM generate_series(0, $3::bigint - 1) i`,
		day.UnixMilli(), salt, n, event.Fingerprint(schemaText), bodyBytes)
	w.mark()
}

// mark marks what has no mark.
func (w *world) mark() {
	w.t.Helper()
	w.exec(`INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset)
		SELECT id, time + interval '1 second', 2, sequence + 100 FROM waybill.outbox_events e
		WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)`)
}

func (w *world) write(opts archive.Options) archive.Result {
	w.t.Helper()
	res, err := archive.Write(w.t.Context(), w.db, source, w.dir, opts)
	must(w.t, err)
	return res
}

// events reads the whole archive.
func (w *world) events() []archive.Event {
	w.t.Helper()
	a, err := archive.Open(w.dir)
	must(w.t, err)
	return all(w.t, a)
}

func all(t testing.TB, a *archive.Archive) (out []archive.Event) {
	t.Helper()
	for e, err := range a.Events(uuid.Nil, uuid.Nil) {
		must(t, err)
		out = append(out, e)
	}
	return out
}

// names are the names of all there is in the archive's folder.
func (w *world) names() (names []string) {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, archive.Folder))
	if !errors.Is(err, os.ErrNotExist) {
		must(w.t, err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// ids are those of the table, in their order.
func (w *world) ids() (ids []uuid.UUID) {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT id FROM waybill.outbox_events ORDER BY id`)
	must(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		must(w.t, rows.Scan(&id))
		ids = append(ids, id)
	}
	must(w.t, rows.Err())
	return ids
}

func cancelled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
