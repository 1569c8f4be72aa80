package cdc_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// everyType is each common type with a value and what a reader gets. A reader
// gets nothing else for a row that a snapshot read.
var everyType = []struct{ name, typ, value, want string }{
	{"a_bool", "boolean", "true", "true"},
	{"a_int2", "smallint", "-32768", "-32768"},
	{"a_int4", "integer", "2147483647", "2147483647"},
	{"a_int8", "bigint", "-9223372036854775808", "-9223372036854775808"},
	{"a_oid", "oid", "4294967295", "4294967295"},
	{"a_float4", "real", "1.1", "1.1"},
	{"a_float8", "double precision", "1.7976931348623157e308", "1.7976931348623157e+308"},
	{"float_nan", "double precision", "'NaN'", "NaN"},
	{"float_inf", "real", "'-Infinity'", "-Inf"},
	{"a_numeric", "numeric(20,4)", "12345678901234.5", "12345678901234.5000"},
	{"numeric_nan", "numeric(10,2)", "'NaN'", "NaN"},
	{"numeric_inf", "numeric", "'Infinity'", "Infinity"},
	{"a_text", "text", "E'é\\n'", "é\n"},
	{"empty", "text", "''", ""},
	{"a_varchar", "varchar(9)", "'v'", "v"},
	{"a_char", "char(4)", "'c'", "c   "},
	{"a_uuid", "uuid", "'6B29FC40-CA47-1067-B31D-00DD010662DA'", "6b29fc40-ca47-1067-b31d-00dd010662da"},
	{"a_date", "date", "'2026-09-01'", "2026-09-01 00:00:00 +0000 UTC"},
	{"date_bc", "date", "'0044-03-15 BC'", "-0043-03-15 00:00:00 +0000 UTC"},
	{"date_inf", "date", "'infinity'", time.Unix(math.MaxInt32*86400, 0).UTC().String()},
	{"a_time", "time", "'23:59:59.000001'", "23h59m59.000001s"},
	{"time_24", "time(0)", "'24:00'", "24h0m0s"},
	{"a_timetz", "timetz", "'12:00:00.5+02'", "12:00:00.5+02"},
	{"a_timestamp", "timestamp", "'2026-09-01 12:00:00.123456'", "2026-09-01 12:00:00.123456 +0000 UTC"},
	{"a_timestamptz", "timestamptz", "'2026-09-01 12:00:00.123456+02'", "2026-09-01 10:00:00.123456 +0000 UTC"},
	{"timestamptz_inf", "timestamptz", "'-infinity'", time.UnixMicro(math.MinInt64).UTC().String()},
	{"timestamp_far", "timestamp", "'99999-01-01'", "99999-01-01 00:00:00 +0000 UTC"},
	{"a_interval", "interval", "'1 year 2 mons -3 days 04:05:06.789'", "P1Y2M-3DT4H5M6.789S"},
	{"a_json", "json", `'{"a": [1,  2]}'`, `{"a": [1,  2]}`},
	{"a_jsonb", "jsonb", `'{"b":1,"a":"x"}'`, `{"a": "x", "b": 1}`},
	{"a_bytea", "bytea", `'\x00ff10'`, "\x00\xff\x10"},
	{"a_enum", "shop.mood", "'so so'", "so so"},
	{"a_inet", "inet", "'10.1.2.3/8'", "10.1.2.3/8"},
	{"a_cidr", "cidr", "'10.0.0.0/8'", "10.0.0.0/8"},
	{"a_macaddr", "macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"},
	{"a_money", "money", "'12.34'", "$12.34"},
	{"a_bit", "bit(3)", "'101'", "101"},
	{"a_xml", "xml", "'<a>b</a>'", "<a>b</a>"},
	{"a_point", "point", "'(1,2)'", "(1,2)"},
	{"a_range", "int4range", "'[1,5)'", "[1,5)"},
	{"a_tsvector", "tsvector", "'b a'", "'a' 'b'"},
	{"a_composite", "shop.pair", "ROW(1,'x y')", `(1,"x y")`},
	{"a_domain", "shop.positive", "7", "7"},
	{"a_domain_of_domain", "shop.small", "7", "7"},
	{"ints", "int[]", "'{1,NULL,3}'", "[1 <nil> 3]"},
	{"no_ints", "int[]", "'{}'", "[]"},
	{"texts", "text[]", `ARRAY['a,b','c"d',NULL,'NULL','']`, `[a,b c"d <nil> NULL ]`},
	{"matrix", "int[]", "'{{1,2},{3,4}}'", "{{1,2},{3,4}}"},
	{"bounds", "int[]", "'[0:1]={1,2}'", "[0:1]={1,2}"},
	{"uuids", "uuid[]", "'{6b29fc40-ca47-1067-b31d-00dd010662da}'", "[6b29fc40-ca47-1067-b31d-00dd010662da]"},
	{"moments", "timestamptz[]", "'{2026-09-01 12:00+00,infinity}'", "[2026-09-01 12:00:00 +0000 UTC " + time.UnixMicro(math.MaxInt64).UTC().String() + "]"},
	{"dates", "date[]", "'{2026-09-01}'", "[2026-09-01 00:00:00 +0000 UTC]"},
	{"floats", "float8[]", "'{1.5,NaN,-Infinity}'", "[1.5 NaN -Inf]"},
	{"blobs", "bytea[]", `ARRAY['\x0a'::bytea]`, "[\n]"},
	{"moods", "shop.mood[]", "'{\"so so\",good}'", "[so so good]"},
	{"numbers", "numeric(6,2)[]", "'{1.5,NaN}'", "[1.50 NaN]"},
	{"jsons", "jsonb[]", `ARRAY['{"a":1}'::jsonb]`, `[{"a": 1}]`},
	{"domains", "shop.positive[]", "'{1,2}'", "[1 2]"},
	{"domain_of_array", "shop.tags", "'{a,b}'", "[a b]"},
	{"boxes", "box[]", "'{(1,1),(0,0);(2,2),(1,1)}'", "{(1,1),(0,0);(2,2),(1,1)}"},
	{"vector", "int2vector", "'1 2'", "1 2"},
}

func TestEveryCommonTypeInStreamAndSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(
		"CREATE TYPE shop.mood AS ENUM ('good', 'so so')",
		"CREATE TYPE shop.pair AS (a int, b text)",
		"CREATE DOMAIN shop.positive AS bigint CHECK (VALUE > 0)",
		"CREATE DOMAIN shop.small AS shop.positive CHECK (VALUE < 10)",
		"CREATE DOMAIN shop.tags AS text[]",
		"CREATE TABLE shop.thing (id int PRIMARY KEY)",
		// Settings that would print otherwise must not reach the reader.
		fmt.Sprintf("ALTER DATABASE %s SET datestyle = 'German, DMY'", w.db.Config().ConnConfig.Database),
		fmt.Sprintf("ALTER DATABASE %s SET timezone = 'America/Sao_Paulo'", w.db.Config().ConnConfig.Database),
		fmt.Sprintf("ALTER DATABASE %s SET bytea_output = 'escape'", w.db.Config().ConnConfig.Database),
		fmt.Sprintf("ALTER DATABASE %s SET extra_float_digits = -10", w.db.Config().ConnConfig.Database),
		fmt.Sprintf("ALTER DATABASE %s SET intervalstyle = 'sql_standard'", w.db.Config().ConnConfig.Database),
	)
	names, values := "id", ""
	for _, c := range everyType {
		w.exec("ALTER TABLE shop.thing ADD COLUMN " + c.name + " " + c.typ)
		names += ", " + c.name
		values += ", " + c.value
	}
	insert := func(id int) { w.exec(fmt.Sprintf("INSERT INTO shop.thing (%s) VALUES (%d%s)", names, id, values)) }
	w.db.Reset() // the settings hold for new sessions
	insert(1)
	w.exec("INSERT INTO shop.thing (id) VALUES (2)")
	table := w.table("thing")
	w.run(table)
	insert(3)
	w.exec("INSERT INTO shop.thing (id) VALUES (4)")
	w.confirmed()

	ops := map[string]string{"1": "r", "2": "r", "3": "c", "4": "c"}
	for _, e := range w.told(table.Topic) {
		id := string(e.Key)
		if e.Op != ops[id] {
			t.Errorf("row %s: op %s", id, e.Op)
		}
		if omitted := e.Value["omitted"].([]any); len(omitted) > 0 {
			t.Errorf("row %s: omitted %v", id, omitted)
		}
		for _, c := range everyType {
			got := e.After[c.name]
			if id == "2" || id == "4" {
				if got != nil {
					t.Errorf("row %s: %s is %v, want null", id, c.name, got)
				}
				continue
			}
			if text := show(got); text != c.want {
				t.Errorf("row %s (%s): %s %s is %q (%T), want %q", id, e.Op, c.typ, c.name, text, got, c.want)
			}
		}
	}
}

func show(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = v[i]
			if b, ok := v[i].([]byte); ok {
				out[i] = string(b)
			}
		}
		return fmt.Sprint(out)
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// What Postgres can hold and Avro's microseconds cannot is infinity, and the
// stream goes on.
func TestTimesTheServerPrintsAreWhatItMeans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, at timestamptz, micros numeric)",
		`INSERT INTO shop.thing SELECT n, at, extract(epoch FROM at) * 1000000 FROM (
			SELECT n, '4713-01-01 00:00+00 BC'::timestamptz + n * interval '452 days 7 hours 11.000013 sec' AS at FROM generate_series(0, 3000) n) t`,
		`INSERT INTO shop.thing VALUES (-1, '294276-12-31 23:59:59.999999+00', 9223372036854775807)`)
	table := w.table("thing")
	w.run(table)
	var ids []string
	for _, e := range w.told(table.Topic) {
		at := e.After["at"].(time.Time)
		if got, want := fmt.Sprint(at.UnixMicro()), e.After["micros"].(string); got != want && got+".000000" != want {
			t.Errorf("row %s: %s, want %s", e.Key, got, want)
		}
		ids = append(ids, string(e.Key))
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) != 3002 {
		t.Errorf("%d rows", len(ids))
	}
	var confirmed bool
	must(t, w.db.QueryRow(context.Background(), `SELECT bool_and(phase = 'done') FROM waybill.cdc_tables`).Scan(&confirmed))
	if !confirmed {
		t.Error("the snapshot is not done")
	}
}
