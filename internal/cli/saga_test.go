package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/saga"
)

// withSagas is a database with two trips of one tenant: trip-1 is completed, the
// seat of trip-2 should have been given back and needs an operator.
func withSagas(t *testing.T) string {
	t.Helper()
	db, dsn := emptyDatabase(t)
	if code, _, errOut := command("saga", "ls", "--database", dsn); code != exitFailed || !strings.Contains(errOut, "waybill up") {
		t.Errorf("without tables: %d %s", code, errOut)
	}
	if err := pg.Migrate(t.Context(), db, saga.Migration()); err != nil {
		t.Fatal(err)
	}
	err := pg.InTenant(t.Context(), db, "t1", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
			INSERT INTO saga.plans (name, plan) VALUES ('book-trip', '{"name": "book-trip", "steps": [
				{"name": "seat", "undo": true, "within": 1000000000, "pause": 1000000000, "asks": 2},
				{"name": "charge", "undo": true, "within": 1000000000, "pause": 1000000000, "asks": 2}]}');
			INSERT INTO saga.instances (tenant, saga, key, round, id, state, step, direction, asked, since, started_at, ended_at, updated_at, correlation_id)
			VALUES ('t1', 'book-trip', 'trip-1', 1, '01a22876-2c72-75f0-aa72-24d230e51961', 'completed', '', 'forward', 0, now(), now() - interval '1 h', now(), now(), 'c1'),
				('t1', 'book-trip', 'trip-2', 1, '01a22876-2c72-75f0-aa72-24d230e51962', 'needs_operator', 'seat', 'back', 2, now(), now() - interval '1 h', NULL, now(), 'c2');
			INSERT INTO saga.entries (tenant, saga, key, round, id, what, step, direction, type, source, time, seen_at)
			SELECT 't1', 'book-trip', 'trip-2', 1, gen_random_uuid(), what, step, direction, type, '/seats', now() - after, now() - after
			FROM (VALUES ('started', '', '', 'travel.TripRequested', interval '1 h'), ('done', 'seat', '', E'travel.SeatTaken\x1b[31m', interval '59 min'),
				('failed', 'charge', '', 'travel.CardRefused', interval '58 min'), ('gave_up', 'seat', 'back', '', interval '30 min')) v(what, step, direction, type, after);
			INSERT INTO saga.entries (tenant, saga, key, round, id, what, step, type, source, time, seen_at)
			SELECT 't1', 'book-trip', 'trip-1', 1, gen_random_uuid(), 'done', step, 'travel.Done', '/seats', now(), now()
			FROM unnest('{seat,charge}'::text[]) step`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

func TestSagasFromTheCommandLine(t *testing.T) {
	dsn := withSagas(t)
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errOut := command(append(append([]string{"saga"}, args...), "--database", dsn)...)
		if code != want {
			t.Fatalf("%v: %d %s %s", args, code, out, errOut)
		}
		return out + errOut
	}
	rows := strings.Split(strings.TrimSpace(run(exitOK, "ls")), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[1], "book-trip  trip-2  1      needs_operator  seat undone  ") || !strings.HasPrefix(rows[2], "book-trip  trip-1  1      completed       -") {
		t.Errorf("%q", rows)
	}
	if out := run(exitOK, "ls", "--stuck", "--json"); !strings.Contains(out, `"key": "trip-2"`) || strings.Contains(out, "trip-1") {
		t.Error(out)
	}
	if out := run(exitOK, "ls", "--limit", "1"); !strings.Contains(out, "there are more: --after 01a22876-2c72-75f0-aa72-24d230e51962") {
		t.Error(out)
	}
	if out := run(exitOK, "ls", "--tenant", "t2"); out != "no sagas\n" {
		t.Error(out)
	}
	run(exitUsage, "ls", "--state", "odd")
	run(exitUsage, "ls", "--limit", "0")
	run(exitFailed, "ls", "--after", "nonsense")

	out := run(exitOK, "show", "trip-2")
	for _, want := range []string{"round 1, needs operator for 1h 0m", "seat undoing > charge failed", "SeatTaken", "!!", "waybill saga resume book-trip trip-2"} {
		if !strings.Contains(out, want) || strings.Contains(out, "\x1b") {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	var d saga.Detail
	if err := json.Unmarshal([]byte(run(exitOK, "show", "book-trip", "trip-2", "--json", "--tenant", "t1")), &d); err != nil || len(d.Entries) != 4 || d.Tenant != "t1" {
		t.Errorf("%v %+v", err, d.Instance)
	}
	for _, args := range [][]string{{"show", "trip-9"}, {"show", "book-trip", "trip-2", "--tenant", "t2"}, {"show", "trip-2", "--round", "7"}} {
		if out := run(exitFailed, args...); !strings.Contains(out, "there is no such saga") || !strings.Contains(out, "waybill saga ls") {
			t.Errorf("%v: %s", args, out)
		}
	}
	run(exitUsage, "show", "trip-2", "--round", "-1")

	if out := run(exitFailed, "resume", "trip-1"); !strings.Contains(out, "refused: it is completed") {
		t.Error(out)
	}
	if out := run(exitOK, "resume", "trip-2", "--reason", "seats are up"); !strings.Contains(out, "step seat will be asked for") {
		t.Error(out)
	}
	if out := run(exitFailed, "resume", "trip-2"); !strings.Contains(out, "needs no operator") {
		t.Error(out)
	}
	run(exitUsage, "skip", "trip-2")
	if out := run(exitFailed, "skip", "trip-2", "--step", "charge", "--reason", "x"); !strings.Contains(out, "not its turn") {
		t.Error(out)
	}
	if out := run(exitOK, "skip", "trip-2", "--step", "seat", "--reason", "given back by telephone"); !strings.Contains(out, "it is compensated") {
		t.Error(out)
	}
	if out := run(exitOK, "show", "trip-2"); !strings.Contains(out, "seats are up") || !strings.Contains(out, "given back by") {
		t.Error(out)
	}
}
