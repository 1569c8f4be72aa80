package tables_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/outbox/tables"
)

// hold opens a transaction that ran statements and stays open until end.
func (w *world) hold(statements ...string) (end func()) {
	w.t.Helper()
	tx, err := w.db.Begin(w.t.Context())
	must(w.t, err)
	ended := false
	end = func() {
		if !ended {
			must(w.t, tx.Commit(context.WithoutCancel(w.t.Context())))
		}
		ended = true
	}
	w.t.Cleanup(end)
	for _, sql := range statements {
		_, err := tx.Exec(w.t.Context(), sql)
		must(w.t, err)
	}
	return end
}

// writers insert events of today until stop is called, which gives them. Each
// insert has a minute: far above what a slow machine takes, and far below for
// ever.
func (w *world) writers() (stop func() []uuid.UUID) {
	db := w.pool()
	ctx, cancel := context.WithCancel(w.t.Context())
	ids := make(chan []uuid.UUID, 1)
	enough := make(chan struct{})
	go func() {
		var out []uuid.UUID
		defer func() { ids <- out }()
		for n := 0; ctx.Err() == nil || n < 30; n++ {
			id := event.ForeignID("writer", uuid.NewString(), now)
			insert, done := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			_, err := db.Exec(insert, insertEvent, insertArgs(id)...)
			done()
			if err != nil {
				w.t.Errorf("a writer was held up: %v", err)
				return
			}
			if out = append(out, id); n == 0 {
				close(enough)
			}
		}
	}()
	<-enough
	return func() []uuid.UUID {
		cancel()
		return <-ids
	}
}

func TestALongTransactionHoldsUpNoWriterAndOnlyWhatItUses(t *testing.T) {
	insertAt := func(at time.Time, n string) string {
		id := event.ForeignID("held", n, at).String()
		return `INSERT INTO waybill.outbox_events (id, topic, subject, source, type, time, tenant, sequence, correlation_id,
				causation_id, trace_parent, schema_fingerprint, body)
			VALUES ('` + id + `', 'noted', 'held', '', '', now(), '', 0, '', '', '', 0, '')`
	}
	for name, c := range map[string]struct {
		holds   []string
		late    bool     // it writes to the first day
		emptied []string // while it is open
		dropped int
	}{
		"that wrote to an old day": {
			[]string{insertAt(first.Add(time.Hour), "1")}, true, []string{"2026-03-02", "2026-03-03"}, 2, // of marks' partitions
		},
		"that wrote to today": {[]string{insertAt(now, "2")}, false, []string{"2026-03-01", "2026-03-02", "2026-03-03"}, 0},
		"that read everything": {
			[]string{"SELECT count(*) FROM waybill.outbox_events"}, false, nil, 0,
		},
		"with an old snapshot": {
			[]string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT pg_current_xact_id()"},
			false,
			[]string{"2026-03-01", "2026-03-02", "2026-03-03"},
			6,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			all := w.days(20)
			end := w.hold(c.holds...)
			stop := w.writers()
			var report tables.Report
			for range 3 { // writers may be in the way of a drop; the holder stays
				r := w.once()
				report.Emptied = append(report.Emptied, r.Emptied...)
				report.Dropped = append(report.Dropped, r.Dropped...)
			}
			written := stop()
			slices.Sort(report.Emptied)
			if join(report.Emptied) != join(c.emptied) {
				t.Errorf("emptied %v, want %v", report.Emptied, c.emptied)
			}
			for _, p := range report.Dropped {
				if c.dropped == 0 || c.late && strings.HasPrefix(p, "outbox_events") {
					t.Errorf("dropped %s under the feet of an open transaction", p)
				}
			}
			var bytes int64
			for _, day := range c.emptied { // the space is free at once
				must(t, w.db.QueryRow(t.Context(), `SELECT coalesce(pg_relation_size(to_regclass($1)), 0)`,
					"waybill.outbox_events_"+strings.ReplaceAll(day, "-", "")).Scan(&bytes))
				if bytes != 0 {
					t.Errorf("%d bytes of %s are still taken", bytes, day)
				}
			}
			end()
			w.mark(now, w.unmarkedIDs()...)
			eventually(t, "the rest leaves too", func() bool { w.once(); return len(w.partitions()) == 8 })
			w.nothingLost(append(all, written...))
			want := 60
			if c.late {
				want++
			}
			if got := len(w.inArchive()); got != want {
				t.Errorf("%d events in the archive, want %d", got, want)
			}
		})
	}
}

func (w *world) unmarkedIDs() (ids []uuid.UUID) {
	marked := map[uuid.UUID]bool{}
	for _, id := range w.inTable("outbox_published") {
		marked[id] = true
	}
	for _, id := range w.inTable("outbox_events") {
		if !marked[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// A disk of 64 KB, which root can have.
func TestAFullDiskDropsNothing(t *testing.T) {
	w := newWorld(t)
	w.dir = t.TempDir()
	if err := syscall.Mount("tmpfs", w.dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small disk to be had (package archive has this test without one): %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(w.dir, 0) })
	var all []uuid.UUID
	for range 900 { // bodies that do not compress
		id := event.ForeignID("test", uuid.NewString(), first)
		w.exec(insertEvent, insertArgs(id)...)
		all = append(all, id)
	}
	w.exec(`UPDATE waybill.outbox_events SET body = sha512(id::text::bytea) || sha512(id::text::bytea || 'x')`)
	w.mark(first, all...)
	report, err := w.retention().Once(t.Context())
	if !errors.Is(err, syscall.ENOSPC) || len(report.Emptied) != 0 {
		t.Fatalf("%+v %v", report, err)
	}
	same(t, "events", w.inTable("outbox_events"), all)
	if files := w.files(); len(files) != 0 {
		t.Errorf("files %v", files)
	}
	if got := join(w.incidents()); !strings.Contains(got, "not archived of 2026-03-01") {
		t.Errorf("incidents %s", got)
	}
	must(t, syscall.Mount("tmpfs", w.dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	eventually(t, "with room, it leaves", func() bool { w.once(); return len(w.inTable("outbox_events")) == 0 })
	same(t, "archive", w.inArchive(), all)
}

func TestStraysLeaveLikeTheirDayWouldHave(t *testing.T) {
	w := newWorld(t)
	past := w.published(first.AddDate(0, 0, -40), 600) // more than a batch
	ancient := w.published(time.UnixMilli(0), 2)
	future := w.event(today.AddDate(9, 0, 0))
	w.mark(now.AddDate(0, 0, -4), future)
	farther := w.event(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))
	w.mark(now.AddDate(0, 0, -4), farther)
	young := w.event(today.AddDate(9, 0, 1)) // published a moment ago
	w.mark(now, young)
	soon := w.event(today.AddDate(0, 0, 3)) // its day's partition will take it in
	w.mark(now.AddDate(0, 0, -4), soon)
	unpublished := w.event(first.AddDate(0, 0, -40))
	stays := []uuid.UUID{young, soon, unpublished}
	leaves := append(append(past, ancient...), future, farther)

	report := w.once()
	if !strings.Contains(kept(report, "default"), "1 old events") || join(report.Emptied) != "default-2026-03-07 default-2026-03-07" {
		t.Errorf("%+v", report)
	}
	same(t, "events", w.inTable("outbox_events"), stays)
	same(t, "marks", w.inTable("outbox_published"), []uuid.UUID{young, soon})
	same(t, "archive", w.inArchive(), leaves)

	// A writer whose clock is always wrong makes two files a day, not two an hour.
	more := w.published(first.AddDate(0, 0, -40).Add(time.Hour), 5)
	w.once()
	if files := w.files(); len(files) != 2 {
		t.Errorf("files %v", files)
	}
	cfg := w.config()
	cfg.Now = func() time.Time { return now.AddDate(0, 0, 1) }
	_, err := tables.NewRetention(w.db, cfg).Once(t.Context())
	must(t, err)
	same(t, "archive", w.inArchive(), append(leaves, more...))
	if _, err := archive.Verify(t.Context(), filepath.Join(w.dir, archive.Folder, "default-2026-03-08.avro")); err != nil {
		t.Error(err)
	}
}
