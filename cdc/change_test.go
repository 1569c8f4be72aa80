package cdc_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/event"
)

// line is an event in short: key, operation, before and after.
func line(e told) string {
	if e.Value == nil {
		return string(e.Key) + " tombstone"
	}
	s := string(e.Key) + " " + e.Op + " " + short(e.Before) + " " + short(e.After)
	if e.Value["before_key_only"].(bool) {
		s += " key only"
	}
	for _, list := range []string{"unchanged", "omitted"} {
		if names := e.Value[list].([]any); len(names) > 0 {
			s += fmt.Sprint(" ", list, " ", names)
		}
	}
	return s
}

func short(row map[string]any) string {
	if row == nil {
		return "-"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(row)) {
		switch v := row[name].(type) {
		case nil:
		case []any:
			parts = append(parts, fmt.Sprintf("%s=[%d]", name, len(v)))
		default:
			parts = append(parts, fmt.Sprintf("%s=%.8s", name, fmt.Sprint(v)))
		}
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// tells compares a topic with lines. Keys have partitions of their own, so only
// each key's order is that of the log.
func (w *world) tells(topic string, want ...string) {
	w.t.Helper()
	w.confirmed()
	got := []string{}
	for _, e := range w.told(topic) {
		got = append(got, line(e))
	}
	byKey := func(a, b string) int {
		ka, _, _ := strings.Cut(a, " ")
		kb, _, _ := strings.Cut(b, " ")
		return strings.Compare(ka, kb)
	}
	slices.SortStableFunc(got, byKey)
	slices.SortStableFunc(want, byKey)
	if !slices.Equal(got, want) {
		w.t.Errorf("told\n%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), w.logged.last())
	}
}

func TestReplicaIdentityDecidesWhatIsKnownOfTheOldRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tables := []cdc.Table{w.table("plain"), w.table("whole")}
	w.exec("CREATE TABLE shop.plain (id int PRIMARY KEY, name text, n int)",
		"CREATE TABLE shop.whole (id int PRIMARY KEY, name text, n int)",
		"ALTER TABLE shop.whole REPLICA IDENTITY FULL")
	w.run(tables...)
	for _, table := range []string{"plain", "whole"} {
		w.exec("INSERT INTO shop."+table+" VALUES (1, 'a', 1), (2, 'b', 2)", "UPDATE shop."+table+" SET n = 3 WHERE id = 1",
			"DELETE FROM shop."+table+" WHERE id = 1", "UPDATE shop."+table+" SET id = 5 WHERE id = 2")
	}
	w.tells(tables[0].Topic,
		"1 c - (id=1 n=1 name=a)", "1 u - (id=1 n=3 name=a)", "1 d (id=1) - key only", "1 tombstone",
		"2 c - (id=2 n=2 name=b)", "2 d (id=2) - key only", "2 tombstone", "5 c - (id=5 n=2 name=b)")
	w.tells(tables[1].Topic,
		"1 c - (id=1 n=1 name=a)", "1 u (id=1 n=1 name=a) (id=1 n=3 name=a)", "1 d (id=1 n=3 name=a) -", "1 tombstone",
		"2 c - (id=2 n=2 name=b)", "2 d (id=2 n=2 name=b) -", "2 tombstone", "5 c - (id=5 n=2 name=b)")
	for i, before := range []bool{false, true} {
		if s := w.status().Tables[i]; s.Before != before {
			t.Errorf("status of %s says %t", s.Table, s.Before)
		}
	}
}

func TestUnchangedLargeValueIsMarkedOrTakenFromTheOldRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var tables []cdc.Table
	for _, name := range []string{"plain", "whole"} {
		w.exec("CREATE TABLE shop."+name+" (id int PRIMARY KEY, doc text, list int[], n int)",
			"ALTER TABLE shop."+name+" ALTER doc SET STORAGE EXTERNAL, ALTER list SET STORAGE EXTERNAL")
		tables = append(tables, w.table(name))
	}
	w.exec("ALTER TABLE shop.whole REPLICA IDENTITY FULL")
	w.run(tables...)
	for _, name := range []string{"plain", "whole"} {
		w.exec("INSERT INTO shop."+name+" SELECT 1, repeat('x', 5000), array_agg(i), 1 FROM generate_series(1, 2000) i",
			"UPDATE shop."+name+" SET n = 2", "UPDATE shop."+name+" SET doc = 'small'")
	}
	w.tells(tables[0].Topic,
		"1 c - (doc=xxxxxxxx id=1 list=[2000] n=1)",
		"1 u - (id=1 n=2) unchanged [doc list]",
		"1 u - (doc=small id=1 n=2) unchanged [list]")
	w.tells(tables[1].Topic,
		"1 c - (doc=xxxxxxxx id=1 list=[2000] n=1)",
		"1 u (doc=xxxxxxxx id=1 list=[2000] n=1) (doc=xxxxxxxx id=1 list=[2000] n=2)",
		"1 u (doc=xxxxxxxx id=1 list=[2000] n=2) (doc=small id=1 list=[2000] n=2)")

	// Under a new key, nobody has the values that were not repeated.
	w.exec("UPDATE shop.plain SET id = 2")
	w.confirmed() // before, the snapshot may not have been asked for
	w.settle()
	w.same(w.rebuilt(tables[0].Topic), w.rows("shop.plain", "id::text"))
	if !w.hasIncident("table read again", "shop.plain", "key changed") {
		t.Errorf("incidents %+v", w.incidents())
	}
}

func TestOnlyColumnsOfTheAllowListLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.person (id int PRIMARY KEY, name text, secret text, hidden jsonb, tenant text)",
		"ALTER TABLE shop.person REPLICA IDENTITY FULL",
		"INSERT INTO shop.person VALUES (1, 'a', 'sesame', '{\"pin\":\"sesame\"}', 't1')")
	table := w.table("person")
	table.Columns, table.TenantColumn = []string{"id", "name", "later"}, "tenant"
	w.run(table)
	w.exec("INSERT INTO shop.person VALUES (2, 'b', 'sesame', '{\"pin\":\"sesame\"}', 't2')",
		"UPDATE shop.person SET secret = 'sesame again' WHERE id = 2",
		"ALTER TABLE shop.person ADD COLUMN secret2 text DEFAULT 'sesame'",
		"UPDATE shop.person SET name = 'c' WHERE id = 2", "DELETE FROM shop.person WHERE id = 2",
		"ALTER TABLE shop.person ADD COLUMN later text", "UPDATE shop.person SET later = 'listed before it was there'")
	w.settle()
	tenants := map[string]string{}
	var last string
	for _, e := range w.told(table.Topic) {
		for _, part := range append([]string{string(e.Record.Value), string(e.Key)}, headers(e)...) {
			if strings.Contains(part, "sesame") || strings.Contains(part, "secret") || strings.Contains(part, "hidden") {
				t.Errorf("it leaked: %q", part)
			}
		}
		for _, row := range []map[string]any{e.Before, e.After} {
			for name := range row {
				if name != "id" && name != "name" && name != "later" {
					t.Errorf("column %s is told", name)
				}
			}
		}
		tenants[string(e.Key)] = header(e.Record, event.HeaderTenant)
		if string(e.Key) == "1" {
			last = line(e)
		}
	}
	if tenants["1"] != "t1" || tenants["2"] != "t2" {
		t.Errorf("tenants %v", tenants)
	}
	if last != "1 u (id=1 name=a) (id=1 later=listed b name=a)" {
		t.Errorf("at last %q", last)
	}
	if !w.logged.has(slog.LevelWarn, "listed that the table has not", "[later]") {
		t.Error("a listed column that was not there is not told")
	}
	subjects, err := w.registry.Subjects(t.Context(), table.Topic)
	must(t, err)
	if len(subjects) != 1 || strings.Contains(w.schema(subjects[0]), "secret") || !strings.Contains(w.schema(subjects[0]), "later") {
		t.Errorf("registered %v", subjects)
	}
}

func headers(e told) (all []string) {
	for _, h := range e.Headers {
		all = append(all, h.Key+"="+string(h.Value))
	}
	return all
}

func TestEnvelopeAndKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (a text, b uuid, n int, PRIMARY KEY (b, a))")
	table := w.table("thing")
	w.run(table)
	const id = "6b29fc40-ca47-1067-b31d-00dd010662da"
	w.exec("INSERT INTO shop.thing VALUES ('x/y%', '"+id+"', 1), ('z', '"+id+"', 2)", "DELETE FROM shop.thing WHERE n = 1")
	w.confirmed()
	first := w.told(table.Topic)
	ids := map[string]bool{}
	for _, e := range first {
		env, err := event.ReadHeaders(len(e.Headers), func(i int) (string, []byte) { return e.Headers[i].Key, e.Headers[i].Value }, e.Timestamp, "")
		must(t, err)
		typ := "shop.thing.cdc"
		if e.Value == nil {
			typ += ".tombstone"
		} else if !env.Time.Equal(e.Value["committed_at"].(time.Time)) {
			t.Errorf("time %s", env.Time)
		}
		if env.Source != "/cdc/"+w.db.Config().ConnConfig.Database || env.Type != typ || env.Subject != string(e.Key) || env.Tenant != "" ||
			!strings.HasPrefix(env.Subject, id+"/") {
			t.Errorf("envelope %+v of key %s", env, e.Key)
		}
		raw := header(e.Record, event.HeaderID)
		if u, err := uuid.Parse(raw); err != nil || u.Version() != 8 || ids[raw] {
			t.Errorf("id %s, %v", raw, err)
		}
		ids[raw] = true
	}
	if len(first) != 4 || string(first[0].Key) != id+"/x%2Fy%25" && string(first[0].Key) != id+"/z" {
		t.Errorf("keys %q", first[0].Key)
	}
}
