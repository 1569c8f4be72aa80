package tables_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/outbox/tables"
)

func TestAnOldDayGoesToTheArchiveAndLeaves(t *testing.T) {
	w := newWorld(t)
	all := w.days(5)
	report := w.once()

	old := []string{"2026-03-01", "2026-03-02", "2026-03-03"}
	if join(report.Emptied) != join(old) || len(report.Archived) != 3 || len(report.Kept) != 0 || len(report.Dropped) != 6 {
		t.Fatalf("%+v", report)
	}
	if files := join(w.files()); files != "2026-03-01.avro 2026-03-02.avro 2026-03-03.avro" {
		t.Errorf("files %s", files)
	}
	same(t, "archive", w.inArchive(), all[:15])
	same(t, "events", w.inTable("outbox_events"), all[15:])
	same(t, "marks", w.inTable("outbox_published"), all[15:])
	if n := len(w.partitions()); n != 8 {
		t.Errorf("partitions %v", w.partitions())
	}
	rows, err := tables.Archives(t.Context(), w.db)
	must(t, err)
	for i, r := range rows {
		if r.File != "outbox-events/"+old[i]+".avro" || r.Day == nil || label(r.Day.UTC()) != old[i] || r.Events != 5 || r.Bytes == 0 ||
			r.FirstID != all[5*i].String() || r.LastID != all[5*i+4].String() || r.DroppedAt == nil ||
			!strings.HasSuffix(r.Place, w.dir) || r.Digest != report.Archived[i].Digest.String() {
			t.Errorf("%+v", r)
		}
	}
	if again := w.once(); len(again.Archived)+len(again.Emptied)+len(again.Dropped)+len(again.Kept) != 0 {
		t.Errorf("a second round found %+v", again)
	}
}

func TestWhatIsYoungerThanTheKeptDaysStays(t *testing.T) {
	w := newWorld(t)
	all := w.published(first, 3)
	cfg := w.config()
	cfg.KeepDays = 4
	for _, at := range []struct {
		clock time.Time
		stays []uuid.UUID
	}{
		{first.AddDate(0, 0, 5).Add(-time.Millisecond), all},
		{first.AddDate(0, 0, 5), nil}, // four whole days lie between
	} {
		cfg.Now = func() time.Time { return at.clock }
		_, err := tables.NewRetention(w.db, cfg).Once(t.Context())
		must(t, err)
		same(t, at.clock.String(), w.inTable("outbox_events"), at.stays)
	}
}

// Less than no days would be today's, and tomorrow's.
func TestFewerThanNoDaysAreTheDefault(t *testing.T) {
	w := newWorld(t)
	young := w.published(first, 3)
	cfg := w.config()
	cfg.KeepDays = -1
	cfg.Now = func() time.Time { return first.Add(time.Hour) }
	_, err := tables.NewRetention(w.db, cfg).Once(t.Context())
	must(t, err)
	same(t, "events", w.inTable("outbox_events"), young)
}

// The clock that counts is the database's, not that of the host the relay
// happens to run on.
func TestTheDatabasesClockCounts(t *testing.T) {
	w := newWorld(t)
	must(t, tables.EnsureDays(t.Context(), w.db, time.Now()))
	young := w.published(time.Now(), 3)
	old := w.published(first, 3)
	cfg := w.config()
	cfg.Now = nil
	_, err := tables.NewRetention(w.db, cfg).Once(t.Context())
	must(t, err)
	same(t, "events", w.inTable("outbox_events"), young)
	same(t, "archive", w.inArchive(), old)
}

func TestAnUnpublishedEventKeepsItsWholeDay(t *testing.T) {
	w := newWorld(t)
	all := w.days(3)
	second := first.AddDate(0, 0, 1)
	late := w.event(second.Add(time.Hour))
	report := w.once()
	if join(report.Emptied) != "2026-03-01 2026-03-03" || !strings.Contains(kept(report, label(second)), "1 of its events") {
		t.Errorf("%+v", report)
	}
	same(t, "events", w.inTable("outbox_events"), append(all[9:], append(all[3:6], late)...))
	w.mark(now, late)
	if report = w.once(); join(report.Emptied) != label(second) {
		t.Errorf("%+v", report)
	}
	w.nothingLost(append(all, late))
}

// Between the copy and the emptying there is time for a writer whose clock is
// days behind.
func TestAnEventThatComesBetweenCopyAndEmptyingIsNotLost(t *testing.T) {
	for name, marked := range map[string]bool{"published": true, "not yet published": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			all := w.published(first, 4)
			r := w.retention()
			var late uuid.UUID
			r.At(func(step string) {
				if step == "registered" && late == uuid.Nil {
					late = w.event(first.Add(time.Hour))
					if marked {
						w.mark(now, late)
					}
				}
			})
			report, err := r.Once(t.Context())
			must(t, err)
			if len(report.Emptied) != 0 || !strings.Contains(kept(report, label(first)), "late") {
				t.Errorf("%+v", report)
			}
			same(t, "events", w.inTable("outbox_events"), append(all, late))
			if !marked {
				w.once()
				same(t, "events", w.inTable("outbox_events"), append(all, late))
				w.mark(now, late)
			}
			w.once()
			same(t, "events", w.inTable("outbox_events"), nil)
			same(t, "archive", w.inArchive(), append(all, late))
			if files := join(w.files()); files != "2026-03-01.1.avro 2026-03-01.avro" {
				t.Errorf("files %s", files)
			}
		})
	}
}

// An event, or a mark, that comes after its day has left.
func TestALateEventOfADayThatHasLeftLeavesToo(t *testing.T) {
	w := newWorld(t)
	all := w.published(first, 4)
	w.once()
	late := w.published(first.Add(time.Hour), 3) // their day's partition is gone
	report := w.once()
	if join(report.Emptied) != "default-2026-03-07" {
		t.Errorf("%+v", report)
	}
	same(t, "events", w.inTable("outbox_events"), nil)
	same(t, "marks", w.inTable("outbox_published"), nil)
	same(t, "archive", w.inArchive(), append(all, late...))
}

// Nobody may ever see an event without its mark: a relay that publishes from
// the table would publish it again.
func TestEventsNeverStandWithoutTheirMarks(t *testing.T) {
	w := newWorld(t)
	all := w.days(200)
	all = append(all, w.published(first.AddDate(0, 0, -9), 700)...)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var looks atomic.Int32
	group.Go(func() {
		for ctx.Err() == nil {
			if n := w.unmarked(t.Context()); n != 0 {
				t.Errorf("%d events without a mark", n)
			}
			looks.Add(1)
		}
	})
	// The one that looks may be in the way at times.
	eventually(t, "all that is old has left, and was looked at meanwhile", func() bool {
		w.once()
		if left := len(w.inTable("outbox_events")); left != 4*200 || looks.Load() > 3 {
			return left == 4*200
		}
		all = append(all, w.published(first.AddDate(0, 0, -9), 50)...)
		return false
	})
	stop()
	group.Wait()
	w.nothingLost(all)
}

func TestTwoProcessesAtOnceDoItOnce(t *testing.T) {
	w := newWorld(t)
	all := w.days(50)
	var group sync.WaitGroup
	var mu sync.Mutex
	var emptied, archived int
	for range 4 {
		db := w.pool()
		group.Go(func() {
			for range 3 {
				report, err := tables.NewRetention(db, w.config()).Once(t.Context())
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				emptied += len(report.Emptied)
				archived += len(report.Archived)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if emptied != 3 || archived != 3 {
		t.Errorf("%d days emptied, %d files written, want 3 and 3", emptied, archived)
	}
	same(t, "archive", w.inArchive(), all[:150])
	w.nothingLost(all)
}

func TestOneAtATime(t *testing.T) {
	w := newWorld(t)
	w.days(1)
	r := w.retention()
	asked := false
	r.At(func(string) {
		if asked {
			return
		}
		asked = true
		report, err := tables.NewRetention(w.db, w.config()).Once(t.Context())
		if err != nil || !report.Elsewhere {
			t.Errorf("%+v %v", report, err)
		}
	})
	_, err := r.Once(t.Context())
	must(t, err)
	if !asked {
		t.Error("nothing happened")
	}
}

func TestWithoutAnArchiveNothingLeaves(t *testing.T) {
	w := newWorld(t)
	all := w.days(2)
	cfg := w.config()
	cfg.Dir = ""
	r := tables.NewRetention(w.db, cfg)
	for range 3 {
		report, err := r.Once(t.Context())
		must(t, err)
		if len(report.Emptied)+len(report.Dropped) != 0 {
			t.Errorf("%+v", report)
		}
	}
	same(t, "events", w.inTable("outbox_events"), all)
	if n := strings.Count(w.log.String(), "outbox.archive_dir"); n != 1 {
		t.Errorf("told %d times how to have an archive, want once:\n%s", n, w.log.String())
	}
}

func TestEventsMayLeaveWithoutACopyIfAskedTo(t *testing.T) {
	w := newWorld(t)
	all := w.days(2)
	unpublished := w.event(first.AddDate(0, 0, 2))
	w.published(first.AddDate(0, 0, -9), 1100) // strays
	cfg := w.config()
	cfg.Dir, cfg.Discard = "", true
	report, err := tables.NewRetention(w.db, cfg).Once(t.Context())
	must(t, err)
	if join(report.Emptied) != "2026-03-01 2026-03-02 default" {
		t.Errorf("%+v", report)
	}
	same(t, "events", w.inTable("outbox_events"), append(all[4:], unpublished))
	same(t, "marks", w.inTable("outbox_published"), all[4:])
}

func TestAFailingArchiveDropsNothingAndIsTold(t *testing.T) {
	w := newWorld(t)
	all := w.days(2)
	must(t, os.WriteFile(w.dir, nil, 0o600)) // in the folder's place
	for range 2 {
		report, err := w.retention().Once(t.Context())
		if err == nil || len(report.Emptied)+len(report.Dropped) != 0 {
			t.Errorf("%+v %v", report, err)
		}
	}
	same(t, "events", w.inTable("outbox_events"), all)
	if got := join(w.incidents()); !strings.Contains(got, "not archived of 2026-03-01") {
		t.Errorf("incidents %s", got)
	}
	must(t, os.Remove(w.dir))
	w.once()
	w.nothingLost(all)
	if len(w.inTable("outbox_events")) != 8 {
		t.Error("nothing left once it could")
	}
}

// A file that a killed process wrote, and that has gone bad since: its events
// are still in the table.
func TestADamagedFileIsWrittenAnewWhileItsEventsAreThere(t *testing.T) {
	w := newWorld(t)
	all := w.published(first, 20)
	slot := "waybill_outbox_" + w.db.Config().ConnConfig.Database
	w.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slot)
	if report := w.once(); len(report.Archived) != 1 || !strings.Contains(kept(report, label(first)), slot) {
		t.Fatalf("%+v", report) // archived, and kept
	}
	w.exec(`SELECT pg_drop_replication_slot($1)`, slot)
	path := filepath.Join(w.dir, archive.Folder, "2026-03-01.avro")
	b, err := os.ReadFile(path)
	must(t, err)
	b[len(b)-40] ^= 1
	must(t, os.WriteFile(path, b, 0o600))

	report, err := w.retention().Once(t.Context())
	if err == nil || !strings.Contains(err.Error(), path) || len(report.Archived) != 1 || join(report.Emptied) != label(first) {
		t.Errorf("%+v %v", report, err)
	}
	if got := join(w.incidents()); !strings.Contains(got, "archive damaged of "+path) {
		t.Errorf("incidents %s", got)
	}
	must(t, os.Remove(path))
	same(t, "archive", w.inArchive(), all)
}

// A relay finds out by their marks that its slot sends events again. As long as
// it might, the marks stay.
func TestADayStaysUntilTheRelaysSlotIsPastIt(t *testing.T) {
	w := newWorld(t)
	all := w.days(3)
	name := w.db.Config().ConnConfig.Database + "_custom"
	w.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, name)
	w.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, name+"_cdc") // of somebody else's
	w.exec(`INSERT INTO waybill.outbox_slots (slot) VALUES ($1)`, name)
	for range 2 {
		report := w.once()
		if len(report.Emptied) != 0 || !strings.Contains(kept(report, label(first)), name) {
			t.Fatalf("%+v", report)
		}
	}
	same(t, "events", w.inTable("outbox_events"), all)
	if files := w.files(); len(files) != 3 {
		t.Errorf("files %v: the second round is to use those of the first", files)
	}
	// Now it moves on while it is waited for, as it does when the relay runs.
	cfg := w.config()
	cfg.Settle = time.Minute
	advance, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for advance.Err() == nil {
			if _, err := w.db.Exec(t.Context(), `SELECT pg_replication_slot_advance($1, pg_current_wal_insert_lsn())`, name); err != nil {
				t.Error(err)
			}
		}
	})
	report, err := tables.NewRetention(w.db, cfg).Once(t.Context())
	stop()
	group.Wait()
	must(t, err)
	if len(report.Emptied) != 3 {
		t.Errorf("%+v", report)
	}
	w.nothingLost(all)
}

func TestMarksWithoutTheirEventsAreForgotten(t *testing.T) {
	w := newWorld(t)
	all := w.days(2)
	w.once()
	dup := all[0] // published twice, the second mark comes after its day has left
	fresh := event.ForeignID("x", "fresh", first.Add(time.Minute))
	w.mark(now.Add(-2*time.Hour), dup)
	w.mark(now.Add(-time.Minute), fresh) // its event may yet be to be seen
	w.once()
	if marks := w.inTable("outbox_published_default"); !slices.Equal(marks, []uuid.UUID{fresh}) {
		t.Errorf("marks %v, want %s alone", marks, fresh)
	}
	same(t, "marks", w.inTable("outbox_published"), append(all[6:], fresh))
}

// Where only one of a day's two partitions could be made.
func TestADayWithoutAPartitionOfMarks(t *testing.T) {
	w := newWorld(t)
	w.exec(`DROP TABLE waybill.outbox_published_20260301`)
	w.exec(`DROP TABLE waybill.outbox_events_20260302`)
	all := w.days(3)
	var left int
	w.once()
	same(t, "events", w.inTable("outbox_events"), all[9:])
	must(t, w.db.QueryRow(t.Context(), `SELECT count(*) FROM waybill.outbox_published WHERE id < $1`, all[9]).Scan(&left))
	if left != 0 {
		t.Errorf("%d marks of days that left", left)
	}
	same(t, "archive", w.inArchive(), all[:9])
	w.once()
	for _, name := range w.partitions() {
		if strings.HasSuffix(name, "_20260302") {
			t.Errorf("%s is still there", name)
		}
	}
}

func TestRetentionIsMeasured(t *testing.T) {
	w := newWorld(t)
	w.days(3)
	w.event(first)
	cfg := w.config()
	reg := prometheus.NewPedanticRegistry()
	cfg.Registerer = reg
	r := tables.NewRetention(w.db, cfg)
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == "waybill_outbox_last_archive_timestamp_seconds" {
			t.Error("before the first file there is a time of the last")
		}
	}
	_, err = r.Once(t.Context())
	must(t, err)
	families, err = reg.Gather()
	must(t, err)
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	for name, want := range map[string]float64{
		"waybill_outbox_kept_days": 5, "waybill_outbox_held_days": 1, "waybill_outbox_archived_events_total": 6,
		"waybill_outbox_retention_failures_total": 0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if got["waybill_outbox_kept_bytes"] < 100_000 || time.Since(time.Unix(int64(got["waybill_outbox_last_archive_timestamp_seconds"]), 0)) > time.Hour {
		t.Errorf("%v", got)
	}
}

func TestRetentionRunsSoonAndEndsWhenAsked(t *testing.T) {
	w := newWorld(t)
	all := w.days(2)
	w.event(first)
	cfg := w.config()
	cfg.First, cfg.Every = time.Millisecond, time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tables.NewRetention(w.db, cfg).Run(ctx) }()
	eventually(t, "days leave", func() bool { return len(w.inTable("outbox_events")) == 11 })
	eventually(t, "what stays is told", func() bool { return strings.Contains(w.log.String(), "1 of its events are not published") })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	same(t, "archive", w.inArchive(), all[2:6])
}
