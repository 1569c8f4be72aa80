package cdc

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"
	"pgregory.net/rapid"
)

func TestTimesAreReadAsPostgresPrintsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Unix(rapid.Int64Range(-210866803200, 253402300799).Draw(t, "seconds"), rapid.Int64Range(0, 999999).Draw(t, "micros")*1000).UTC()
		year, era := want.Year(), ""
		if year <= 0 {
			year, era = 1-year, " BC"
		}
		day := fmt.Sprintf("%04d-%02d-%02d", year, want.Month(), want.Day())
		clock := strings.TrimRight(strings.TrimRight(want.Format("15:04:05.000000"), "0"), ".")
		if got, ok := parseTimestamp([]byte(day + " " + clock + "+00" + era)); !ok || got != want.UnixMicro() {
			t.Fatalf("%s %s%s: %d, want %d", day, clock, era, got, want.UnixMicro())
		}
		days := floorDiv(want.Unix(), secondsPerDay)
		if got, ok := parseDate([]byte(day + era)); !ok || int64(got) != days {
			t.Fatalf("%s%s: %d, want %d", day, era, got, days)
		}
		if got, ok := parseTime([]byte(clock)); !ok || got != want.UnixMicro()-days*microsPerDay {
			t.Fatalf("%s: %d", clock, got)
		}
	})
}

func TestOffsetsAndEdgesOfTime(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01 02:00:00+02":          0,
		"1969-12-31 22:30:00-01:30":       0,
		"1970-01-01 00:00:01+00:00:01":    0,
		"infinity":                        math.MaxInt64,
		"-infinity":                       math.MinInt64,
		"294276-12-31 23:59:59.999999+00": math.MaxInt64, // the last one Postgres has
		"4714-11-24 00:00:00+00 BC":       -210866803200 * 1e6,
		"10000-01-01 00:00:00.5":          253402300800_500_000,
		"2000-02-29 24:00:00":             951868800 * 1e6,
		"2026-01-01 23:59:60":             1767312000 * 1e6,
	} {
		if got, ok := parseTimestamp([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d %t, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", "2026", "2026-13-01 00:00:00", "2026-01-01", "2026-01-01 00:00", "2026-01-01 00:00:00 ", "2026-01-01 00:00:00+0", "99999999-01-01 00:00:00"} {
		if got, ok := parseTimestamp([]byte(text)); ok {
			t.Errorf("%q was taken for %d", text, got)
		}
	}
}

// fits decodes b as the type of c and gives what is there.
func fits(t testing.TB, c columnType, b []byte) any {
	t.Helper()
	s, err := avro.Parse(c.avro())
	if err != nil {
		t.Fatal(err)
	}
	var v any
	rest, err := s.Decode(b, &v)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%s: % x: %v, %d left", c.avro(), b, err, len(rest))
	}
	return v
}

func TestArraysAreListsOrTheirText(t *testing.T) {
	c := columnType{kindString, true, "text[]"}
	for text, want := range map[string]any{
		`{}`:                    []any{},
		`{a,NULL,"NULL",""}`:    []any{"a", nil, "NULL", ""},
		`{"a\"b","c\\d","e,f"}`: []any{`a"b`, `c\d`, "e,f"},
		`{{1,2},{3,4}}`:         `{{1,2},{3,4}}`,
		`[0:1]={1,2}`:           `[0:1]={1,2}`,
		`{a,}`:                  `{a,}`, // not of Postgres
	} {
		b, ok := c.append(nil, []byte(text))
		if got := fits(t, c, b); !ok || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: %#v, want %#v", text, got, want)
		}
	}
	numbers := columnType{kindInt, true, "int4[]"}
	b, ok := numbers.append(nil, []byte(`{1,NULL,-3}`))
	if got := fits(t, numbers, b); !ok || fmt.Sprint(got) != "[1 <nil> -3]" {
		t.Errorf("%v", got)
	}
}

func TestKeysOfSeveralColumnsAreToldApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringMatching(`[a%/25F]{0,6}`), 2, 4).Draw(t, "parts")
		var key []byte
		for i, p := range parts {
			if i > 0 {
				key = append(key, '/')
			}
			key = appendPart(key, []byte(p))
		}
		got, ok := splitKey(key, len(parts))
		if !ok {
			t.Fatalf("%q is no key of %d", key, len(parts))
		}
		for i, p := range parts {
			if string(got[i]) != p {
				t.Fatalf("%q: part %d is %q, want %q", key, i, got[i], p)
			}
		}
	})
}

func TestNamesAvroDoesNotTake(t *testing.T) {
	n := names{}
	for _, c := range []struct{ column, field string }{
		{"plain", "plain"}, {"Größe", "Gr__e"}, {"a b", "a_b"}, {"a-b", "a_b_2"}, {"2nd", "_2nd"}, {"", "_"}, {"a_b", "a_b_3"},
	} {
		if got := n.of(c.column); got != c.field {
			t.Errorf("%q is %q, want %q", c.column, got, c.field)
		}
	}
}

func TestVisibilityOfTransactions(t *testing.T) {
	v, err := parseVisibility("100:105:100,103")
	if err != nil {
		t.Fatal(err)
	}
	for xid, want := range map[uint32]bool{99: true, 100: false, 101: true, 103: false, 104: true, 105: false, 2000: false, 3: true} {
		if v.sees(xid) != want {
			t.Errorf("%d: %t", xid, !want)
		}
	}
	// Just after the 32 bits went round.
	v, err = parseVisibility("4294967290:4294967300:4294967295,4294967298")
	if err != nil {
		t.Fatal(err)
	}
	for xid, want := range map[uint32]bool{4294967289: true, 4294967295: false, 4294967294: true, 2: false, 3: true, 4: false, 5: false} {
		if v.sees(xid) != want {
			t.Errorf("%d after the round: %t", xid, !want)
		}
	}
	for _, s := range []string{"", "1:2", "a:b:", "1:2:x", "1:2:3:4"} {
		if _, err := parseVisibility(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

// Whatever comes, what is taken is valid Avro of the column's type, and what is
// not leaves no trace.
func FuzzValue(f *testing.F) {
	for k := range avroTypes {
		for _, text := range []string{"1", "t", "NaN", "-Infinity", "infinity", `\x00ff`, "2026-01-02 03:04:05.678+00", "0044-03-15 BC", "12:00:00", `{1,"a\"b",NULL}`, "{{1},{2}}", "\xff"} {
			f.Add(uint8(k), false, []byte(text))
			f.Add(uint8(k), true, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, k uint8, array bool, text []byte) {
		c := columnType{kind(k) % kind(len(avroTypes)), array, ""}
		before := []byte("before")
		b, ok := c.append(bytes.Clone(before), text)
		if !bytes.HasPrefix(b, before) || !ok && len(b) != len(before) {
			t.Fatalf("%v of %q: %q", c, text, b)
		}
		if ok {
			fits(t, c, b[len(before):])
		}
		if parts, ok := splitKey(text, 2); ok && len(parts) != 2 {
			t.Fatalf("%q", parts)
		}
	})
}
