package archive_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/archive"
)

func TestAFileHasEveryColumnOfItsEvents(t *testing.T) {
	w := newWorld(t)
	ids := []uuid.UUID{event.IDFloor(day), event.ForeignID("a", "1", day.Add(time.Hour)), event.ForeignID("b", "2", day.Add(23*time.Hour))}
	const insert = `INSERT INTO waybill.outbox_events (id, topic, subject, source, type, time, tenant, sequence,
		correlation_id, causation_id, trace_parent, schema_fingerprint, body, xid)
		VALUES ($1, 'noted', $2, '/test', 'test.Noted', $3::text::timestamptz, 't', $4, $5, '', '', $6, $7, $8)`
	w.exec(insert, ids[0], "", "2026-03-01 00:00:00.000001+00", 0, "", event.Fingerprint(schemaText), []byte{}, nil)
	w.exec(insert, ids[1], "ключ\t\"\u0001\U0001F4E6", "0044-03-15 12:00:00+00 BC", int64(-1<<62), strings.Repeat("c", 4096), int64(-7), []byte{0, 255, 1}, int64(1)<<40)
	w.exec(insert, ids[2], "k", "infinity", 3, "x", event.Fingerprint(schemaText), bytes.Repeat([]byte{7}, 900_000), 5)
	w.mark()
	// A second mark, of an event published twice: the first one counts.
	w.exec(`INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset) VALUES ($1, '2026-03-02', 9, 9)`, ids[0])

	res := w.write(archive.Options{})
	if res.Rows != 3 || res.File == nil || res.File.Events != 3 || res.File.First != ids[0] || res.File.Last != ids[2] || res.File.Name() != "outbox-events/2026-03-01.avro" {
		t.Fatalf("%+v", res)
	}
	got := w.events()
	if len(got) != 3 {
		t.Fatalf("%d events", len(got))
	}
	for i, e := range got {
		var want archive.Event
		var xid *int64
		var at, published string
		must(t, w.db.QueryRow(t.Context(), `SELECT e.id, topic, subject, source, type, e.time::text, tenant, sequence, correlation_id,
				causation_id, trace_parent, schema_fingerprint, body, xid, p.log_partition, p.log_offset, p.published_at::text
			FROM waybill.outbox_events e JOIN waybill.outbox_published p USING (id) WHERE e.id = $1
			ORDER BY p.published_at LIMIT 1`, ids[i]).
			Scan(&want.ID, &want.Topic, &want.Subject, &want.Source, &want.Type, &at, &want.Tenant, &want.Sequence, &want.CorrelationID,
				&want.CausationID, &want.TraceParent, &want.Fingerprint, &want.Body, &xid, &want.Published.Partition, &want.Published.Offset, &published))
		if xid != nil {
			want.XID = *xid
		}
		want.Time, want.Published.At = e.Time, e.Published.At // below
		if !archive.Same(&e, &want) || e.Published != want.Published {
			t.Errorf("event %d is\n%+v, want\n%+v", i, e, want)
		}
		if at == "infinity" {
			continue // an end of time; it is only to be taken
		}
		for _, pair := range []struct {
			got  time.Time
			want string
		}{{e.Time, at}, {e.Published.At, published}} {
			var same bool
			must(t, w.db.QueryRow(t.Context(), `SELECT $1::timestamptz = $2::text::timestamptz`, pair.got, pair.want).Scan(&same))
			if !same {
				t.Errorf("event %d: %s, want %s", i, pair.got, pair.want)
			}
		}
	}
}

// Who has the files needs no database.
func TestAFileBringsTheSchemasOfItsEvents(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 3, 10)
	w.write(archive.Options{})
	a, err := archive.Open(w.dir)
	must(t, err)
	s, ok := a.Schema(event.Fingerprint(schemaText))
	if !ok || s.Text != schemaText || s.Subject != "noted-test.Noted" {
		t.Errorf("%+v %v", s, ok)
	}
	if _, ok := a.Schema(1); ok {
		t.Error("found a schema nobody declared")
	}
}

func TestOnlyTheOwnerReadsTheArchive(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 1, 10)
	res := w.write(archive.Options{})
	for path, want := range map[string]fs.FileMode{
		res.File.Path: 0o600, filepath.Dir(res.File.Path): 0o700 | fs.ModeDir, w.dir: 0o700 | fs.ModeDir,
	} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", path, info.Mode(), want)
		}
	}
}

func TestLateEventsGoIntoAFileOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.fill(10, 40, 100)
	first := w.write(archive.Options{})
	w.fill(0, 7, 100)  // before the others
	w.fill(20, 9, 100) // among them
	second := w.write(archive.Options{Archived: []archive.File{*first.File}})
	if second.Rows != 56 || second.File.Events != 16 || second.File.Name() != "outbox-events/2026-03-01.1.avro" {
		t.Fatalf("%+v", second)
	}
	none := w.write(archive.Options{Archived: []archive.File{*first.File, *second.File}})
	if none.File != nil || none.Rows != 56 || none.Fingerprint != second.Fingerprint {
		t.Errorf("%+v: nothing was new", none)
	}
	w.hasAll()
}

// hasAll compares the archive with the table: every event once, by id.
func (w *world) hasAll() {
	w.t.Helper()
	want, got := w.ids(), w.events()
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i].ID {
			w.t.Fatalf("%d events in the archive, %d in the table; they part at %d", len(got), len(want), i)
		}
	}
}

func TestAnEventInTwoFilesComesOnce(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 50, 100)
	w.write(archive.Options{})
	w.exec(`INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset)
		SELECT id, '2026-01-01', 0, 0 FROM waybill.outbox_events`) // as a relay that published them again
	w.write(archive.Options{})
	if names := w.names(); len(names) != 2 {
		t.Fatalf("%v", names)
	}
	w.hasAll()
	w.exec(`UPDATE waybill.outbox_events SET subject = 'other' WHERE sequence = 30`)
	w.write(archive.Options{})
	a, err := archive.Open(w.dir)
	must(t, err)
	err = nil
	for _, e := range a.Events(uuid.Nil, uuid.Nil) {
		if e != nil {
			err = e
		}
	}
	if err == nil || !strings.Contains(err.Error(), "differs") {
		t.Errorf("two different events under one id: %v", err)
	}
}

func TestARowChangedSinceItWasArchivedIsTold(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 5, 100)
	res := w.write(archive.Options{})
	w.exec(`UPDATE waybill.outbox_events SET body = 'x' WHERE sequence = 3`)
	_, err := archive.Write(t.Context(), w.db, source, w.dir, archive.Options{Archived: []archive.File{*res.File}})
	if err == nil || !strings.Contains(err.Error(), "changed") {
		t.Error(err)
	}
}

func TestUnpublishedEventsAreNotArchived(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 10, 100)
	w.exec(`DELETE FROM waybill.outbox_published WHERE log_offset = 105`)
	_, err := archive.Write(t.Context(), w.db, source, w.dir, archive.Options{})
	if !errors.Is(err, archive.ErrUnmarked) || len(w.names()) != 0 {
		t.Errorf("%v, %v", err, w.names())
	}
	skip := source
	skip.SkipUnmarked = true
	res, err := archive.Write(t.Context(), w.db, skip, w.dir, archive.Options{})
	must(t, err)
	if res.File.Events != 9 {
		t.Errorf("%d events, want the 9 published", res.File.Events)
	}
	skip.PublishedBefore = day.Add(time.Second + 3*time.Millisecond) // fill publishes a second after each
	res, err = archive.Write(t.Context(), w.db, skip, w.dir, archive.Options{})
	must(t, err)
	if res.File.Events != 3 {
		t.Errorf("%d events, want the 3 published before", res.File.Events)
	}
}

func TestNothingToWriteWritesNothing(t *testing.T) {
	w := newWorld(t)
	if res := w.write(archive.Options{}); res.File != nil || res.Rows != 0 || len(w.names()) != 0 {
		t.Errorf("%+v %v", res, w.names())
	}
}

func TestNoFileIsEverOverwritten(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 200, 100)
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			taken := func(name string) bool { return name == "outbox-events/2026-03-01.2.avro" }
			if _, err := archive.Write(t.Context(), w.db, source, w.dir, archive.Options{Taken: taken}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	want := []string{
		"2026-03-01.1.avro", "2026-03-01.3.avro", "2026-03-01.4.avro", "2026-03-01.5.avro", "2026-03-01.6.avro", "2026-03-01.avro",
	}
	if names := w.names(); !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	w.hasAll()
}

func TestACancelledWriteLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 5, 10)
	if _, err := archive.Write(cancelled(t), w.db, source, w.dir, archive.Options{}); err == nil || len(w.names()) != 0 {
		t.Errorf("%v %v", err, w.names())
	}
}

func TestRangesOfIDs(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 100, 10)
	w.write(archive.Options{})
	w.fill(1, 100, 10)
	first, err := archive.Stat(filepath.Join(w.dir, archive.Folder, label+".avro"))
	must(t, err)
	w.write(archive.Options{Archived: []archive.File{first}})
	a, err := archive.Open(w.dir)
	must(t, err)
	ids := w.ids()
	for range 50 {
		from, to := rand.IntN(len(ids)), rand.IntN(len(ids))
		if from > to {
			from, to = to, from
		}
		n := from
		for e, err := range a.Events(ids[from], ids[to]) {
			must(t, err)
			if e.ID != ids[n] {
				t.Fatalf("event %d of %d..%d is %s", n, from, to, e.ID)
			}
			n++
		}
		if n != to {
			t.Fatalf("%d..%d ended at %d", from, to, n)
		}
	}
	for _, err := range a.Events(uuid.Nil, uuid.Nil) {
		must(t, err)
		break // closes the files: goleak and the next test's folder would notice
	}
}

func TestLockReadsRowsAsTheArchiveHasThem(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 5, 100)
	w.write(archive.Options{})
	want := w.events()
	must(t, pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		rows, err := archive.Lock(t.Context(), tx, source.Table, []uuid.UUID{want[1].ID, want[3].ID, uuid.New()})
		if err != nil || len(rows) != 2 {
			return fmt.Errorf("%d rows, %w", len(rows), err)
		}
		slices.SortFunc(rows, func(a, b archive.Event) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		if !archive.Same(&rows[0], &want[1]) || !archive.Same(&rows[1], &want[3]) {
			t.Errorf("%+v", rows)
		}
		return nil
	}))
}
