package cdc_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/cdc"
)

func TestColumnsComeGoAndChangeWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, name text, n int)", "ALTER TABLE shop.thing REPLICA IDENTITY FULL")
	table := w.table("thing")
	w.run(table)
	n := 0
	put := func() {
		n++
		w.exec(fmt.Sprintf("INSERT INTO shop.thing (id) VALUES (%d)", n), "UPDATE shop.thing SET id = id WHERE id <= 2")
	}
	put()
	for _, ddl := range []string{
		"ADD COLUMN added text",
		"ADD COLUMN filled int DEFAULT 7", // rows from before have it without an event
		"DROP COLUMN n",
		"RENAME COLUMN name TO title",
		"ALTER COLUMN title TYPE int USING length(title)",
		"ADD COLUMN name bytea DEFAULT '\\x01'",
		"ALTER COLUMN filled TYPE text",
		"ALTER COLUMN filled TYPE int USING filled::int", // back to an earlier shape
		"ADD COLUMN \"odd name\" timestamptz DEFAULT '2026-09-01 00:00+00'",
	} {
		w.exec("UPDATE shop.thing SET id = id", "ALTER TABLE shop.thing "+ddl, "UPDATE shop.thing SET id = id WHERE id = 1")
		put()
		if t.Failed() {
			t.Fatal(ddl)
		}
	}
	w.exec("ALTER TABLE shop.thing RENAME COLUMN \"odd name\" TO odd_name")
	put()
	w.eventually("the topic is the table", func() (bool, any) {
		w.settle()
		diff := difference(strip(w.rebuilt(table.Topic)), strip(w.rows("shop.thing", "id::text")))
		return diff == "", diff
	})
	if w.logged.has(slog.LevelError, "") { // Postgres' own word for an error stands in lines of less
		t.Errorf("not all went well:\n%s", w.logged.last())
	}
	subjects, err := w.registry.Subjects(t.Context(), table.Topic)
	must(t, err)
	want := map[string]bool{}
	for _, s := range []string{"cdc", "cdc_v2", "cdc_v3"} {
		want[table.Topic+"-shop.thing."+s] = true
	}
	for _, s := range subjects {
		if !want[s] {
			t.Errorf("registered %v", subjects)
		}
	}
	if len(subjects) < 2 {
		t.Errorf("registered %v: a retyped column is a break", subjects)
	}
}

// strip leaves what prints differently in JSON and Avro out.
func strip(rows map[string]map[string]any) map[string]map[string]any {
	for _, row := range rows {
		for name, v := range row {
			if name == "name" || name == "odd_name" {
				row[name] = v != nil
			}
		}
	}
	return rows
}

func TestTablesComeAndGoWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.one (id int PRIMARY KEY)", "CREATE TABLE shop.two (id int PRIMARY KEY, v text)",
		"INSERT INTO shop.one VALUES (1)", "INSERT INTO shop.two VALUES (1, 'a')")
	one, two := w.table("one"), w.table("two")
	c := w.new(w.config(one))
	w.start(c)
	w.settle()
	must(t, c.SetTables(one, two))
	w.exec("INSERT INTO shop.two VALUES (2, 'b')")
	w.eventually("both are published", func() (bool, any) { s := w.status(); return len(s.Tables) == 2, s })
	w.settle()
	w.exec("INSERT INTO shop.two VALUES (3, 'c')")
	w.confirmed()
	w.same(w.rebuilt(two.Topic), w.rows("shop.two", "id::text"))

	must(t, c.SetTables(two))
	w.eventually("one is gone", func() (bool, any) { s := w.status(); return len(s.Tables) == 1, s })
	w.exec("INSERT INTO shop.one VALUES (2)", "DELETE FROM shop.one WHERE id = 1")
	w.confirmed()
	if got := w.rebuilt(one.Topic); len(got) != 1 {
		t.Errorf("a table that is not configured is published: %v", got)
	}
	// What happened to it meanwhile is made up for, deletions too.
	must(t, c.SetTables(one, two))
	w.eventually("both are published", func() (bool, any) { s := w.status(); return len(s.Tables) == 2, s })
	w.settle()
	w.same(w.rebuilt(one.Topic), w.rows("shop.one", "id::text"))
	if err := c.SetTables(one, one); err == nil {
		t.Error("the same table twice was taken")
	}
}

func TestTableMadeAnewIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v text)", "INSERT INTO shop.thing VALUES (1, 'a'), (2, 'b')")
	table := w.table("thing")
	w.run(table)
	w.exec("DROP TABLE shop.thing")
	w.eventually("its absence is told", func() (bool, any) {
		s := w.status()
		return s.Tables[0].Error != nil && strings.Contains(*s.Tables[0].Error, "there is no table"), s
	})
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v int)", "INSERT INTO shop.thing VALUES (2, 22), (3, 33)")
	w.eventually("it is published", func() (bool, any) { s := w.status(); return s.Tables[0].Error == nil, s })
	w.settle()
	w.exec("INSERT INTO shop.thing VALUES (4, 44)")
	w.confirmed()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
	if !w.hasIncident("table not published", "there is no table") || !w.hasIncident("table read again") {
		t.Errorf("incidents %+v", w.incidents())
	}
	// That it was mended is no trouble, and what mended it needs not be done.
	if w.logged.has(slog.LevelError, "read again") || w.hasIncident("table read again", "create it") {
		t.Errorf("a mend was told as trouble: %+v", w.incidents())
	}
}

func TestTruncatedTableEndsUpEmptyInTheTopicToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v text)", "INSERT INTO shop.thing SELECT n, 'old' FROM generate_series(1, 50) n")
	table := w.table("thing")
	w.run(table)
	w.exec("DELETE FROM shop.thing WHERE id > 45", "TRUNCATE shop.thing", "INSERT INTO shop.thing VALUES (7, 'new'), (60, 'new')")
	w.confirmed()
	w.settle()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
	if got := w.status().Tables[0].Snapshot.Deleted; got != 44 { // neither 7, which is back, nor those that have a tombstone
		t.Errorf("%d keys were deleted", got)
	}
	if !w.hasIncident("table read again", "truncated") {
		t.Errorf("incidents %+v", w.incidents())
	}
}

func TestPrimaryKeyThatChangesGivesNewKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int NOT NULL, code text NOT NULL, PRIMARY KEY (id))", "INSERT INTO shop.thing VALUES (1, 'a'), (2, 'b')",
		"ALTER TABLE shop.thing REPLICA IDENTITY FULL")
	table := w.table("thing")
	w.run(table)
	w.exec("BEGIN; ALTER TABLE shop.thing DROP CONSTRAINT thing_pkey; ALTER TABLE shop.thing ADD PRIMARY KEY (code); COMMIT",
		"INSERT INTO shop.thing VALUES (3, 'c')")
	w.eventually("the change is told", func() (bool, any) { return w.hasIncident("table read again", "primary key"), w.incidents() })
	w.settle()
	w.exec("ALTER TABLE shop.thing RENAME COLUMN code TO name", "INSERT INTO shop.thing VALUES (4, 'd')", "DELETE FROM shop.thing WHERE id = 1")
	w.eventually("the topic is the table", func() (bool, any) {
		w.settle()
		diff := difference(w.rebuilt(table.Topic), w.rows("shop.thing", "name"))
		return diff == "", diff
	})
}

func TestTableThatCannotBePublishedIsToldAndHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.good (id int PRIMARY KEY)", "CREATE TABLE shop.keyless (id int)",
		"CREATE TABLE shop.silent (id int PRIMARY KEY)", "ALTER TABLE shop.silent REPLICA IDENTITY NOTHING",
		"CREATE TABLE shop.late (id int, PRIMARY KEY (id) DEFERRABLE)", "CREATE UNLOGGED TABLE shop.unlogged (id int PRIMARY KEY)",
		"CREATE VIEW shop.seen AS SELECT * FROM shop.good", "CREATE TABLE shop.narrow (id int PRIMARY KEY, v text)",
		"CREATE TABLE shop.indexed (id int PRIMARY KEY, v int NOT NULL UNIQUE)",
		"ALTER TABLE shop.indexed REPLICA IDENTITY USING INDEX indexed_v_key",
		"CREATE TABLE shop.guarded (id int PRIMARY KEY)", "ALTER TABLE shop.guarded ENABLE ROW LEVEL SECURITY",
		"ALTER TABLE shop.guarded FORCE ROW LEVEL SECURITY")
	problems := map[string]struct{ text, mend string }{
		"keyless":  {"no primary key", "ALTER TABLE shop.keyless ADD PRIMARY KEY (id)"},
		"silent":   {"replica identity nothing", "ALTER TABLE shop.silent REPLICA IDENTITY DEFAULT"},
		"late":     {"deferrable", "ALTER TABLE shop.late REPLICA IDENTITY FULL"},
		"unlogged": {"SET LOGGED", "ALTER TABLE shop.unlogged SET LOGGED"},
		"seen":     {"not a table", "DROP VIEW shop.seen; CREATE TABLE shop.seen (id int PRIMARY KEY)"},
		"missing":  {"no table", "CREATE TABLE shop.missing (id int PRIMARY KEY)"},
		"narrow":   {"allow-list", "ALTER TABLE shop.narrow DROP CONSTRAINT narrow_pkey; ALTER TABLE shop.narrow ADD PRIMARY KEY (v)"},
		"indexed":  {"index", "ALTER TABLE shop.indexed REPLICA IDENTITY FULL"},
		"guarded":  {"row-level security", "CREATE POLICY cdc ON shop.guarded USING (current_setting('waybill.cdc_snapshot', true) = 'on') WITH CHECK (true)"},
	}
	tables := []cdc.Table{w.table("good")}
	for name := range problems {
		table := w.table(name)
		if name == "narrow" {
			table.Columns = []string{"v"}
		}
		tables = append(tables, table)
	}
	w.start(w.new(w.config(tables...)))
	w.eventually("the problems are told", func() (bool, any) {
		s := w.status()
		for _, table := range s.Tables {
			name := strings.TrimPrefix(table.Table, "shop.")
			want := problems[name].text
			if (table.Error == nil) != (want == "") || want != "" && !strings.Contains(*table.Error, want) {
				return false, fmt.Sprintf("%s: %v, want %q", name, table.Error, want)
			}
			if want != "" && !w.hasIncident("table not published", want) {
				return false, name + " is no incident"
			}
		}
		return len(s.Tables) == len(tables), s
	})
	// None of it is in the way of its application.
	w.exec("INSERT INTO shop.good VALUES (1)", "INSERT INTO shop.keyless VALUES (1)", "UPDATE shop.keyless SET id = 2", "INSERT INTO shop.silent VALUES (1)",
		"UPDATE shop.silent SET id = 2", "INSERT INTO shop.late VALUES (1)", "UPDATE shop.late SET id = 2", "DELETE FROM shop.silent")
	w.settle()
	w.same(w.rebuilt(tables[0].Topic), w.rows("shop.good", "id::text"))
	for name, p := range problems {
		w.exec(p.mend)
		if name == "guarded" {
			w.exec("INSERT INTO shop.guarded VALUES (8)")
		}
	}
	w.eventually("all are published", func() (bool, any) {
		for _, table := range w.status().Tables {
			if table.Error != nil {
				return false, *table.Error
			}
		}
		return true, nil
	})
	w.settle()
	if !w.logged.has(slog.LevelError, "keyless", "no primary key") {
		t.Error("no line in the log")
	}
	for _, table := range tables {
		if table.Name == "guarded" {
			w.tells(table.Topic, "8 r - (id=8)")
			continue
		}
		key := "id::text"
		if table.Name == "narrow" {
			key = "v"
		}
		w.same(w.rebuilt(table.Topic), w.rows("shop."+table.Name, key))
	}
}

func TestPartitionedTableIsOneTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
		"CREATE TABLE shop.low PARTITION OF shop.thing FOR VALUES FROM (0) TO (10)",
		"CREATE TABLE shop.high PARTITION OF shop.thing FOR VALUES FROM (10) TO (20)",
		"INSERT INTO shop.thing VALUES (1, 'a'), (11, 'b')")
	table := w.table("thing")
	w.run(table)
	w.exec("INSERT INTO shop.thing VALUES (2, 'c')", "UPDATE shop.thing SET id = 12 WHERE id = 1", "DELETE FROM shop.high WHERE id = 11",
		"CREATE TABLE shop.higher PARTITION OF shop.thing FOR VALUES FROM (20) TO (30)", "INSERT INTO shop.thing VALUES (21, 'd')")
	w.confirmed()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
	// Rows that go with their partition have no event: somebody has to ask.
	w.exec("DROP TABLE shop.low")
	must(t, cdc.RequestSnapshot(t.Context(), w.db, "", "shop.thing"))
	w.settle()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
}

func TestTopicMadeAnewIsFilledAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY)", "INSERT INTO shop.thing SELECT generate_series(1, 20)")
	table := w.table("thing")
	stop := w.run(table)
	stop()
	adm := kadm.NewClient(w.engine.Client(t))
	_, err := adm.DeleteTopic(context.Background(), table.Topic)
	must(t, err)
	w.exec("DELETE FROM shop.thing WHERE id = 3")
	w.start(w.new(w.config(table)))
	w.eventually("it is told", func() (bool, any) { return w.hasIncident("table read again", "topic"), w.incidents() })
	w.settle()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
}
