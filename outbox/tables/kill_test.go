package tables_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
)

// What TestRoundThatIsKilled is told by TestAKillBetweenAnyTwoStepsLosesNothing.
const (
	killDSN  = "WAYBILL_TABLES_KILL_DSN"
	killDir  = "WAYBILL_TABLES_KILL_DIR"
	killStep = "WAYBILL_TABLES_KILL_STEP" // kill -9 at the step of that number
)

// TestRoundThatIsKilled is run in a process of its own.
func TestRoundThatIsKilled(t *testing.T) {
	dsn := os.Getenv(killDSN)
	if dsn == "" {
		t.Skip("run by another test")
	}
	last, err := strconv.Atoi(os.Getenv(killStep))
	must(t, err)
	db, err := pg.Open(t.Context(), dsn, pg.Config{})
	must(t, err)
	defer db.Close()
	r := tables.NewRetention(db, tables.RetentionConfig{Dir: os.Getenv(killDir), Now: func() time.Time { return now }})
	steps := 0
	r.At(func(step string) {
		if steps++; steps == last {
			_, _ = os.Stdout.WriteString("killed at " + step + "\n")
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it comes at its own time
		}
	})
	_, err = r.Once(t.Context())
	must(t, err)
}

// roundUntil makes a round in a process that ends at a step, false if the round
// was over before.
func (w *world) roundUntil(step int) (killed bool, said string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), os.Args[0], "-test.run", "TestRoundThatIsKilled$")
	cmd.Env = append(os.Environ(), killDSN+"="+w.dsn, killDir+"="+w.dir, killStep+"="+strconv.Itoa(step))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
		w.t.Fatalf("%v: %s", err, out)
	}
	return err != nil, string(out)
}

// One process after another dies, each a step further in, with events coming in
// late in between.
func TestAKillBetweenAnyTwoStepsLosesNothing(t *testing.T) {
	w := newWorld(t)
	all := w.published(first, 30)
	all = append(all, w.published(first.AddDate(0, 0, 1), 30)...)
	all = append(all, w.published(first.AddDate(0, 0, -5), 30)...) // strays
	all = append(all, w.published(today, 30)...)
	kills := 0
	for step := 1; ; step++ {
		killed, said := w.roundUntil(step)
		w.waitForLock()
		w.nothingLost(all)
		if t.Failed() {
			t.Fatalf("after step %d: %s", step, said)
		}
		if !killed {
			break
		}
		kills++
		if step%3 == 0 { // more to do, for those days and for the default partition
			all = append(all, w.published(first.Add(time.Duration(step)*time.Minute), 1)...)
		}
	}
	if kills < 8 {
		t.Errorf("the round has %d steps only", kills)
	}
	w.once()
	old := []uuid.UUID{}
	for _, id := range all {
		if id.Time() != 0 && !isToday(id) {
			old = append(old, id)
		}
	}
	// Strays leave once a day: those that came after today's file wait.
	left := len(w.inTable("outbox_events_default"))
	if got := len(w.inArchive()); got != len(old)-left {
		t.Errorf("%d events in the archive, want %d", got, len(old)-left)
	}
	if got := len(w.inTable("outbox_events")); got != 30+left {
		t.Errorf("%d events in the table, want %d", got, 30+left)
	}
	if left == 30 {
		t.Error("no stray left")
	}
}

func isToday(id uuid.UUID) bool {
	ms := int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 | int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5])
	return !time.UnixMilli(ms).Before(today)
}

// waitForLock waits until the server has noticed that a process is gone, and
// with it the lock of its round.
func (w *world) waitForLock() {
	w.t.Helper()
	eventually(w.t, "the dead process's session is over", func() (free bool) {
		must(w.t, w.db.QueryRow(w.t.Context(), `SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory'
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&free))
		return free
	})
}

// Each step by itself, from the same beginning: the round after it mends all.
func TestTheRoundAfterAKillEndsWhatItBegan(t *testing.T) {
	begin := func(t *testing.T) (*world, []uuid.UUID) {
		w := newWorld(t)
		return w, append(w.published(first, 10), w.published(first.AddDate(0, 0, -5), 10)...)
	}
	w, _ := begin(t)
	r := w.retention()
	var steps []string
	r.At(func(step string) { steps = append(steps, step) })
	_, err := r.Once(t.Context())
	must(t, err)
	if len(steps) < 12 {
		t.Errorf("steps %v", steps)
	}
	for i, name := range steps {
		t.Run(strconv.Itoa(i+1)+" "+name, func(t *testing.T) {
			w, all := begin(t)
			if killed, said := w.roundUntil(i + 1); !killed {
				t.Fatalf("not killed: %s", said)
			}
			w.waitForLock()
			w.nothingLost(all)
			w.once()
			same(t, "events", w.inTable("outbox_events"), nil)
			same(t, "marks", w.inTable("outbox_published"), nil)
			same(t, "archive", w.inArchive(), all)
			if files := w.files(); len(files) != 2 { // what the dead process had finished is used
				t.Errorf("files %v", files)
			}
			archived, err := tables.Archives(t.Context(), w.db)
			must(t, err)
			if len(archived) != 2 || archived[0].DroppedAt == nil || archived[1].DroppedAt == nil {
				t.Errorf("noted: %+v", archived)
			}
		})
	}
}
