package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// command runs the program as main does.
func command(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = Main(args, &o, &e)
	return code, o.String(), e.String()
}

// emptyDatabase has no tables.
func emptyDatabase(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	dsn := pgtest.New(t)
	db, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, dsn
}

func migrated(t *testing.T) (*pgxpool.Pool, string) {
	t.Helper()
	db, dsn := emptyDatabase(t)
	if err := pg.Migrate(t.Context(), db, incident.Migration(), tables.Migration()); err != nil {
		t.Fatal(err)
	}
	return db, dsn
}

func TestIncidentsAreListed(t *testing.T) {
	db, dsn := migrated(t)
	if code, out, errOut := command("incidents", "--database", dsn); code != 0 || !strings.Contains(out, "no incidents in the last 24h") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	for _, subject := range []string{"a", "a", "b"} {
		in := incident.Incident{Part: "relay", Kind: "slot lost", Subject: subject, Text: "made\nanew\x1b[31m"}
		if err := incident.Record(t.Context(), db, in); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(t.Context(), `UPDATE waybill.incidents SET last_at = last_at - interval '2 days' WHERE subject = 'b'`); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := command("incidents", "--database", dsn)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(rows) != 2 || !strings.Contains(rows[1], "2      relay  slot lost  a        made anew") || strings.Contains(out, "\x1b") {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	var seen []incident.Seen
	_, out, _ = command("incidents", "--database", dsn, "--since", "72h", "--json")
	if err := json.Unmarshal([]byte(out), &seen); err != nil || len(seen) != 2 || seen[1].Subject != "b" {
		t.Errorf("%v %s", err, out)
	}
}

func TestIncidentsOfNothingAreAMistakeThatIsTold(t *testing.T) {
	_, dsn := emptyDatabase(t)
	if code, _, errOut := command("incidents", "--database", dsn); code != exitFailed || !strings.Contains(errOut, "waybill up") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, _, errOut := command("incidents", "--since", "-1h"); code != exitUsage || !strings.Contains(errOut, "--since") {
		t.Errorf("%d %s", code, errOut)
	}
}
