package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/outbox/tables"
)

// outboxOf has 30 events, of which the first 10 are marked, and a slot that
// nobody reads.
func outboxOf(t *testing.T) (db *pgxpool.Pool, dsn, slot string) {
	t.Helper()
	db, dsn = migrated(t)
	if err := tables.EnsureDays(t.Context(), db, time.Now()); err != nil {
		t.Fatal(err)
	}
	slot = relay.SlotName(db.Config().ConnConfig.Database)
	run(t, db, `INSERT INTO waybill.outbox_events
		SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
			'things', 'k', '/test', 'Thing', now() - interval '7 days 1 hour', 't1', 0, '', '', '', 1, 'body'
		FROM generate_series(1, 30) n`)
	run(t, db, `INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset)
		SELECT id, now() - interval '1 hour', 0, 0 FROM waybill.outbox_events ORDER BY id LIMIT 10`)
	run(t, db, `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slot)
	return db, dsn, slot
}

func run(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// says runs a command that has to succeed.
func says(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errOut := command(args...)
	if code != exitOK {
		t.Fatalf("%v: %d %s", args, code, errOut)
	}
	return out
}

func contain(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestStatusTellsWhatWaitsAndWhy(t *testing.T) {
	db, dsn, slot := outboxOf(t)
	var event uuid.UUID
	if err := db.QueryRow(t.Context(), `SELECT max(id::text)::uuid FROM waybill.outbox_events`).Scan(&event); err != nil {
		t.Fatal(err)
	}
	run(t, db, `INSERT INTO waybill.outbox_stopped (slot, topic, partition, event_id, error, attempts) VALUES ($1, 'things', 3, $2, 'too large', 7)`, slot, event)
	run(t, db, `INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) VALUES ($1, 'a test order', 'ana@desk')`, event)
	if err := incident.Record(t.Context(), db, incident.Incident{Part: "relay", Kind: "slot_lost", Subject: slot, Text: "made anew"}); err != nil {
		t.Fatal(err)
	}
	contain(t, says(t, "outbox", "status", "--database", dsn),
		"20 events committed and not yet marked", "(7 d ago)", "0.0 events/s", slot+"  inactive", "let in; the budget is 1000000 events and 2.0 GiB of WAL kept",
		"of 4.0 GiB that the server keeps, status reserved", "waybill run relay",
		"things  3          "+event.String(), "too large", "a test order", "ana@desk", "slot_lost")
	var s struct {
		Backlog   *int64
		Rate      *float64         `json:"published_per_second"`
		Slot      map[string]any   `json:"slot"`
		Stopped   []map[string]any `json:"stopped_partitions"`
		Skips     []map[string]any `json:"pending_skips"`
		Incidents []incident.Seen  `json:"incidents"`
	}
	if err := json.Unmarshal([]byte(says(t, "outbox", "status", "--database", dsn, "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if *s.Backlog != 20 || *s.Rate != 0 || len(s.Stopped) != 1 || len(s.Skips) != 1 || len(s.Incidents) != 1 ||
		s.Stopped[0]["attempts"] != 7.0 || s.Slot["lag_seconds_estimated"].(float64) < 604800 {
		t.Errorf("%+v", s)
	}
	// Carried out, a skip is pending no more.
	run(t, db, `INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset) VALUES ($1, now(), -1, -1)`, event)
	run(t, db, `DELETE FROM waybill.outbox_stopped`)
	if out := says(t, "outbox", "status", "--database", dsn); strings.Contains(out, "given up") || strings.Contains(out, "stopped partitions") {
		t.Errorf("still there:\n%s", out)
	}
}

func TestStatusTellsThePublishRate(t *testing.T) {
	db, dsn, _ := outboxOf(t)
	for _, marks := range []struct {
		n   int
		ago string
	}{{20_000, "3 min"}, {6_000, "5 s"}} { // of many pages each
		run(t, db, `INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset)
			SELECT (SELECT id FROM waybill.outbox_events LIMIT 1), now() - $2::text::interval, 0, n FROM generate_series(1, $1::int) n`, marks.n, marks.ago)
	}
	contain(t, says(t, "outbox", "status", "--database", dsn), "100.0 events/s over the last minute")
}

func TestStatusOfMessagesGivesNoCount(t *testing.T) {
	_, dsn, _ := outboxOf(t)
	t.Setenv(config.EnvRelay, "message")
	contain(t, says(t, "outbox", "status", "--database", dsn), "unknown: events are written to the WAL alone", "an unknown time", "published  unknown")
	contain(t, says(t, "outbox", "status", "--database", dsn, "--json"), `"published_per_second": null`)
	contain(t, says(t, "outbox", "status", "--database", dsn, "--json"), `"backlog": null`)
}

func TestStatusTellsWhatToDoAboutTheSlot(t *testing.T) {
	limit, kept := int64(4<<30), int64(3<<30)
	for want, s := range map[string]struct {
		slot relay.SlotStatus
		mode relay.Mode
	}{
		"max_slot_wal_keep_size = '7GB'":        {relay.SlotStatus{Exists: true, Active: true, WALStatus: "unreserved", RetainedBytes: &kept, KeepLimit: &limit}, ""},
		"more than half":                        {relay.SlotStatus{Exists: true, Active: true, WALStatus: "extended", RetainedBytes: &kept, KeepLimit: &limit}, ""},
		"nothing is lost":                       {relay.SlotStatus{Exists: true, WALStatus: "lost"}, ""},
		"since its confirmed position is lost":  {relay.SlotStatus{Exists: true, WALStatus: "lost"}, relay.Message},
		"publishes what has no mark":            {relay.SlotStatus{}, ""},
		"events are refused":                    {relay.SlotStatus{}, relay.Message},
		"start the relay":                       {relay.SlotStatus{Exists: true, WALStatus: "reserved"}, ""},
		"pg_drop_replication_slot('left over')": {relay.SlotStatus{Name: "left over", Exists: true, WALStatus: "reserved"}, relay.Poll},
	} {
		if got := s.slot.Advise(relay.Config{Mode: s.mode}); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	for _, s := range []relay.SlotStatus{
		{Exists: true, Active: true, WALStatus: "reserved"}, {Exists: true, Active: true, WALStatus: "extended", RetainedBytes: &kept},
	} {
		if got := s.Advise(relay.Config{}); got != "" {
			t.Errorf("%+v: %q", s, got)
		}
	}
}

func TestOnlyARefusedEventIsGivenUp(t *testing.T) {
	db, dsn, slot := outboxOf(t)
	ids := func(where string) (id string) {
		if err := db.QueryRow(t.Context(), `SELECT e.id::text FROM waybill.outbox_events e WHERE `+where+` LIMIT 1`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	const marked = `EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)`
	waiting, published := ids("NOT "+marked), ids(marked)
	skip := func(id string, more ...string) (int, string, string) {
		return command(append([]string{"outbox", "skip", id, "--database", dsn}, more...)...)
	}
	for name, c := range map[string]struct {
		id   string
		more []string
		code int
		say  string
	}{
		"no reason":    {waiting, nil, exitUsage, "--reason"},
		"blank reason": {waiting, []string{"--reason", " "}, exitUsage, "--reason"},
		"no id":        {"k1", []string{"--reason", "x"}, exitUsage, "k1"},
		"not refused":  {waiting, []string{"--reason", "x"}, exitFailed, "--force"},
		"unknown":      {uuid.NewString(), []string{"--reason", "x"}, exitFailed, "no such event"},
		"not asked":    {waiting, []string{"--undo"}, exitFailed, "nobody asked"},
		"undone why":   {waiting, []string{"--undo", "--reason", "x"}, exitUsage, "--undo"},
		"published":    {published, []string{"--reason", "x", "--force"}, exitFailed, "is published"},
	} {
		if code, out, errOut := skip(c.id, c.more...); code != c.code || !strings.Contains(errOut, c.say) || out != "" {
			t.Errorf("%s: %d %q %q", name, code, out, errOut)
		}
	}
	var n int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM waybill.outbox_skips`).Scan(&n); err != nil || n != 0 {
		t.Fatalf("%d were noted, %v", n, err)
	}
	if code, out, errOut := skip(waiting, "--reason", "x", "--force"); code != 0 || !strings.Contains(out, "no partition waits") {
		t.Errorf("forced: %d %s %s", code, out, errOut)
	}
	contain(t, says(t, "outbox", "status", "--database", dsn), "events to be given up", waiting)
	if code, out, errOut := skip(waiting, "--undo"); code != 0 || !strings.Contains(out, "is not to be given up any more") {
		t.Errorf("undone: %d %s %s", code, out, errOut)
	}
	unknown := uuid.NewString()
	if code, out, errOut := skip(unknown, "--reason", "in the WAL alone", "--force"); code != 0 {
		t.Errorf("forced: %d %s %s", code, out, errOut)
	}
	contain(t, says(t, "outbox", "status", "--database", dsn), "events to be given up", unknown)
	if err := incident.Record(t.Context(), db, incident.Incident{Part: "relay", Kind: "event_skipped", Subject: unknown, Text: "given up"}); err != nil {
		t.Fatal(err)
	}
	if out := says(t, "outbox", "status", "--database", dsn); strings.Contains(out, "to be given up") {
		t.Errorf("carried out, and still pending:\n%s", out)
	}
	if code, out, errOut := skip(unknown, "--undo"); code != exitFailed || !strings.Contains(errOut, "too late") {
		t.Errorf("undone after it was carried out: %d %s %s", code, out, errOut)
	}
	run(t, db, `INSERT INTO waybill.outbox_stopped (slot, topic, partition, event_id, error) VALUES ($1, 'things', 3, $2, 'too large')`, slot, waiting)
	if code, out, errOut := skip(waiting, "--reason", "a test order"); code != 0 || !strings.Contains(out, "partition 3 of things goes on") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	var reason, by string
	if err := db.QueryRow(t.Context(), `SELECT reason, asked_by FROM waybill.outbox_skips WHERE event_id = $1`, waiting).Scan(&reason, &by); err != nil ||
		reason != "a test order" || !strings.Contains(by, "@") {
		t.Errorf("%q by %q, %v", reason, by, err)
	}
	if code, out, errOut := skip(waiting, "--reason", "another"); code != 0 || !strings.Contains(out, "noted already") || !strings.Contains(out, "a test order") {
		t.Errorf("again: %d %s %s", code, out, errOut)
	}
	var again struct {
		Event   string
		Reason  string
		Noted   bool `json:"noted_before"`
		Stopped *struct{ Topic string }
		Effect  string
	}
	code, out, errOut := skip(waiting, "--reason", "again", "--json")
	if err := json.Unmarshal([]byte(out), &again); err != nil || code != 0 || again.Event != waiting || !again.Noted || again.Reason != "a test order" || again.Stopped == nil || again.Effect == "" {
		t.Errorf("again: %v %s %s", err, out, errOut)
	}
	contain(t, says(t, "outbox", "status", "--database", dsn), "events to be given up", "a test order")
}

func TestOutboxOfADatabaseWithoutTablesIsTold(t *testing.T) {
	_, dsn := emptyDatabase(t)
	for _, args := range [][]string{{"outbox", "status"}, {"outbox", "skip", uuid.NewString(), "--reason", "x"}} {
		if code, _, errOut := command(append(args, "--database", dsn)...); code != exitFailed || !strings.Contains(errOut, "waybill up") {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
	}
}

func TestStatusTellsThatWritersAreRefused(t *testing.T) {
	_, dsn, _ := outboxOf(t)
	file := filepath.Join(t.TempDir(), "waybill.yaml")
	for allowed, says := range map[string]string{
		"19": "refused: more than 19 events wait", "20": "still refused if they were before", "26": "let in; the budget is 26 events",
	} {
		if err := os.WriteFile(file, []byte("outbox: {max_backlog: "+allowed+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(config.EnvFile, file)
		code, out, errOut := command("outbox", "status", "--database", dsn)
		if code != exitOK || !strings.Contains(out, says) {
			t.Errorf("of %s no %q: %d %s %s", allowed, says, code, out, errOut)
		}
		var s struct {
			Refused bool   `json:"writers_refused"`
			Budget  *int64 `json:"max_backlog"`
		}
		if code, out, errOut = command("outbox", "status", "--database", dsn, "--json"); code != exitOK || json.Unmarshal([]byte(out), &s) != nil ||
			s.Refused != (allowed == "19") || fmt.Sprint(*s.Budget) != allowed {
			t.Errorf("of %s: %d %s %s", allowed, code, out, errOut)
		}
	}
}
