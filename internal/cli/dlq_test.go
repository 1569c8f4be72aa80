package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/consumer"
)

const (
	deadA = "01a22876-2c72-75f0-aa72-24d230e51961"
	nextA = "01a22876-2c72-75f0-aa72-24d230e51962"
	deadB = "01a22876-2c72-75f0-aa72-24d230e51963"
)

// withDead is a database with two dead keys of group billing: a, with one event
// behind, and b.
func withDead(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	db, dsn := emptyDatabase(t)
	if err := consumer.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	_, err := db.Exec(t.Context(), `INSERT INTO waybill.parked (group_name, topic, partition, "offset", key, event_id, type, tenant,
			subject, sequence, record_time, header_names, header_values, value, state, error, class, cause, cause_id, failures,
			dead_at, death_id, copied_at)
		SELECT 'billing', 'orders.events', 0, n, k::bytea, id::uuid, 'OrderCreated', 'tenant-' || k, '', 1, now(),
			'{ce_id}', ARRAY[id::bytea], 'bytes', state, E'no account 7\x1b[31m', 'other', 'no account #', 'c0ffee00', 3,
			CASE WHEN state = 'dead' THEN now() END, CASE WHEN state = 'dead' THEN gen_random_uuid() END, now()
		FROM (VALUES (1, 'a', $1, 'dead'), (2, 'a', $2, 'waiting'), (3, 'b', $3, 'dead')) v(n, k, id, state)`, deadA, nextA, deadB)
	if err != nil {
		t.Fatal(err)
	}
	return db, dsn
}

func deadStates(t *testing.T, db *pgxpool.Pool) (out string) {
	t.Helper()
	err := db.QueryRow(t.Context(), `SELECT coalesce(string_agg(state, ' ' ORDER BY seq), '') FROM waybill.parked`).Scan(&out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDeadLettersAreListedByCauseAndKey(t *testing.T) {
	_, dsn := withDead(t)
	code, out, errOut := command("dlq", "ls", "--database", dsn)
	if rows := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(rows) != 2 ||
		!strings.HasPrefix(rows[1], "c0ffee00  billing  orders.events  OrderCreated  other  2     2 ") || !strings.HasSuffix(rows[1], "no account #") {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	code, out, errOut = command("dlq", "ls", "--keys", "--tenant", "tenant-a", "--since", "1h", "--database", dsn)
	if rows := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(rows) != 2 || !strings.Contains(rows[1], "0@1    a    "+deadA+"  tenant-a  dead") ||
		strings.Contains(out, "\x1b") {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	var keys []consumer.DeadKey
	_, out, _ = command("dlq", "ls", "--keys", "--json", "--database", dsn)
	if err := json.Unmarshal([]byte(out), &keys); err != nil || len(keys) != 2 || keys[0].Behind != 1 {
		t.Errorf("%v %s", err, out)
	}
	for _, filter := range [][]string{{"--group", "x"}, {"--key", ""}, {"--until", "1h"}, {"--since", "2999-01-01T00:00:00Z"}} {
		if code, out, _ := command(append([]string{"dlq", "ls", "--database", dsn}, filter...)...); code != 0 || out != "nothing is dead\n" {
			t.Errorf("%v: %d %s", filter, code, out)
		}
	}
}

func TestADeadLetterIsShownThoughNoRegistryKnowsIt(t *testing.T) {
	_, dsn := withDead(t)
	code, out, errOut := command("dlq", "show", deadA, "--database", dsn, "--registry", "http://127.0.0.1:1")
	for _, want := range []string{"tenant-a", "orders.events 0@1", "1 event of its key behind it", "3 times, class other", "orders.events.dlq.billing", "  ce_id", "cannot be decoded", "bytes"} {
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "\x1b") {
			t.Errorf("%d %q %s, want %q", code, out, errOut, want)
		}
	}
	if code, _, errOut := command("dlq", "show", deadA, "--tenant", "tenant-b", "--database", dsn); code != exitFailed || !strings.Contains(errOut, "waybill dlq ls --keys") {
		t.Errorf("%d %s", code, errOut)
	}
}

func TestRedriveIsFollowedToItsEnd(t *testing.T) {
	db, dsn := withDead(t)
	base := []string{"--database", dsn, "--group", "billing"}
	run := func(args ...string) (int, string, string) {
		return command(append(append([]string{"dlq", "redrive"}, args...), base...)...)
	}
	if code, out, errOut := run("--all", "--dry-run"); code != 0 || out != "2 keys would be tried again\n" || deadStates(t, db) != "dead waiting dead" {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := run("--key", "b", "--reason", "mended", "--wait", "1ms"); code != 0 || !strings.Contains(out, "0 of 1 key free, 0 draining, 1 waiting") || !strings.Contains(out, "waybill groups") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := run("--key", "b"); code != 0 || !strings.Contains(out, "nothing to try again") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	// A member of the group, as far as the table shows: one key goes well, the
	// other dies again.
	_, err := db.Exec(t.Context(), `CREATE FUNCTION member() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.state := 'dead'; RETURN NEW; END $$;
		CREATE TRIGGER member BEFORE UPDATE ON waybill.parked FOR EACH ROW WHEN (NEW.key = 'a') EXECUTE FUNCTION member();
		DELETE FROM waybill.parked WHERE key = 'b'`)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := run("--cause", "c0ffee00"); code != exitFailed || !strings.Contains(out, "1 dead again") || !strings.Contains(errOut, "1 key died again: waybill dlq ls") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	code, out, errOut := command("dlq", "log", "--database", dsn)
	if code != 0 || !strings.Contains(out, "redrive  "+operator()) || !strings.Contains(out, "mended") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}

func TestDropGivesUpOneEventOrAKey(t *testing.T) {
	db, dsn := withDead(t)
	base := []string{"--database", dsn, "--group", "billing", "--reason", "test order"}
	run := func(args ...string) (int, string, string) {
		return command(append(append([]string{"dlq", "drop"}, args...), base...)...)
	}
	if code, out, errOut := run(deadA, "--dry-run"); code != 0 || out != "1 event would be given up\n" || deadStates(t, db) != "dead waiting dead" {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := run(deadA); code != 0 || !strings.HasPrefix(out, "1 event given up") || deadStates(t, db) != "retrying dead" {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, _, errOut := run(deadA); code != exitFailed || !strings.Contains(errOut, "nothing to drop") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, out, errOut := run("--key", "a", "--topic", "orders.events"); code != 0 || !strings.HasPrefix(out, "1 event given up") || deadStates(t, db) != "dead" {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}

func TestWhatChoosesTooMuchIsAMistake(t *testing.T) {
	for want, args := range map[string][]string{
		"--group":              {"redrive", "--all"},
		"--all":                {"redrive", "--group", "g"},
		"one of them":          {"redrive", "--group", "g", "--all", "--key", "k"},
		"--since":              {"ls", "--since", "yesterday"},
		"--event":              {"ls", "--event", "x"},
		"want an id":           {"show", "x"},
		"--reason":             {"drop", deadA, "--group", "g"},
		"either an event or a": {"drop", "--group", "g", "--reason", "r"},
		"of which topic":       {"drop", "--group", "g", "--reason", "r", "--key", "k"},
		"of which group":       {"drop", deadA, "--reason", "r"},
		"--limit":              {"log", "--limit", "0"},
	} {
		if code, _, errOut := command(append([]string{"dlq"}, args...)...); code != exitUsage || !strings.Contains(errOut, want) {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
	}
}
