package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/tables"
)

// oldEvents is a database with published events of a day long past, and the
// folder of an archive for them.
func oldEvents(t *testing.T, n int) (dsn, dir string) {
	t.Helper()
	t.Chdir(t.TempDir()) // where no waybill runs
	t.Setenv("WAYBILL_CONFIG", "")
	db, dsn := migrated(t)
	for range n {
		id := event.ForeignID("test", uuid.NewString(), time.Now().AddDate(0, 0, -9))
		if _, err := db.Exec(t.Context(), `WITH e AS (INSERT INTO waybill.outbox_events (id, topic, subject, source, type, time, tenant,
				sequence, correlation_id, causation_id, trace_parent, schema_fingerprint, body)
			VALUES ($1, 'noted', 'a', '', 'Noted', now(), 't', 1, '', '', '', 7, 'body'))
			INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset) VALUES ($1, now(), 0, 0)`, id); err != nil {
			t.Fatal(err)
		}
	}
	return dsn, filepath.Join(t.TempDir(), "archive")
}

func TestOldEventsAreArchivedWhenAsked(t *testing.T) {
	dsn, dir := oldEvents(t, 3)
	code, out, errOut := command("outbox", "archive", "run", "--database", dsn, "--archive-dir", dir)
	if code != 0 || !strings.Contains(out, "3 events") || !strings.Contains(out, "left the outbox") || !strings.Contains(errOut, "archived events") {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut = command("outbox", "archive", "run", "--database", dsn, "--archive-dir", dir); code != 0 || !strings.Contains(out, "nothing is old enough") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	var report tables.Report
	if code, out, errOut = command("outbox", "archive", "run", "--json", "--database", dsn, "--archive-dir", dir); code != 0 || json.Unmarshal([]byte(out), &report) != nil {
		t.Errorf("%d %s %s", code, out, errOut)
	}

	if code, out, errOut = command("outbox", "archive", "ls", "--database", dsn); code != 0 || !strings.Contains(out, "outbox-events/default-") || !strings.Contains(out, dir) {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	var files []tables.Archived
	code, out, errOut = command("outbox", "archive", "ls", "--json", "--database", dsn)
	if code != 0 || json.Unmarshal([]byte(out), &files) != nil || len(files) != 1 || files[0].Events != 3 || files[0].DroppedAt == nil {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	path := filepath.Join(dir, files[0].File)
	for _, arg := range []string{dir, path} {
		if code, out, errOut = command("outbox", "archive", "verify", arg); code != 0 || !strings.Contains(out, "sound") {
			t.Errorf("%d %s %s", code, out, errOut)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut = command("outbox", "archive", "verify", dir); code != 1 || !strings.Contains(out, "damaged") || !strings.Contains(errOut, "1 of 1") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}

func TestAFileThatIsGoneIsMissed(t *testing.T) {
	dsn, dir := oldEvents(t, 2)
	config := filepath.Join(t.TempDir(), "waybill.yaml")
	if err := os.WriteFile(config, []byte("database_url: \""+dsn+"\"\noutbox: {archive_dir: "+dir+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WAYBILL_CONFIG", config)
	if code, out, errOut := command("outbox", "archive", "run"); code != 0 {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := command("outbox", "archive", "verify"); code != 0 || !strings.Contains(out, "sound") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	files, err := filepath.Glob(filepath.Join(dir, "outbox-events", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := command("outbox", "archive", "verify"); code != 1 || !strings.Contains(out, "missing") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}

func TestArchiveCommandsSayWhatTheyLack(t *testing.T) {
	dsn, dir := oldEvents(t, 0)
	for _, c := range []struct {
		code int
		say  string
		args []string
	}{
		{2, "--archive-dir", []string{"run", "--database", dsn}},
		{2, "keep_days", []string{"run", "--database", dsn, "--archive-dir", dir, "--keep-days", "-1"}},
		{2, "--keep-days 0", []string{"run", "--database", dsn, "--archive-dir", dir, "--keep-days", "0"}},
		{2, "archive --help", []string{"lst"}},
		{1, "no such file", []string{"verify", dir}},
		{1, "outbox-events", []string{"verify", t.TempDir()}},
		{2, "unknown command", []string{"lst"}},
	} {
		code, out, errOut := command(append([]string{"outbox", "archive"}, c.args...)...)
		if code != c.code || !strings.Contains(errOut, c.say) {
			t.Errorf("%v: %d %s %s, want %d and %q", c.args, code, out, errOut, c.code, c.say)
		}
	}
}
