package protobuf_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry/protobuf"
)

func TestEveryRegistryHasTheseImports(t *testing.T) {
	for _, name := range []string{
		"confluent/meta.proto", "confluent/type/decimal.proto", "confluent/type/variant.proto",
		"google/type/calendar_period.proto", "google/type/color.proto", "google/type/date.proto", "google/type/datetime.proto",
		"google/type/dayofweek.proto", "google/type/decimal.proto", "google/type/expr.proto", "google/type/fraction.proto",
		"google/type/interval.proto", "google/type/latlng.proto", "google/type/money.proto", "google/type/month.proto",
		"google/type/phone_number.proto", "google/type/postal_address.proto", "google/type/quaternion.proto", "google/type/timeofday.proto",
		"google/protobuf/any.proto", "google/protobuf/api.proto", "google/protobuf/descriptor.proto", "google/protobuf/duration.proto",
		"google/protobuf/empty.proto", "google/protobuf/field_mask.proto", "google/protobuf/source_context.proto",
		"google/protobuf/struct.proto", "google/protobuf/timestamp.proto", "google/protobuf/type.proto", "google/protobuf/wrappers.proto",
	} {
		var im protobuf.Imports
		if _, err := im.Compile(p3(fmt.Sprintf("import %q;", name)), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Nothing else of this program's, and no file.
	for _, name := range []string{"io/prometheus/client/metrics.proto", "/etc/passwd", "imports_test.go", "confluent/../doc.go", "google/type/", "google/protobuf/x.proto", ""} {
		var im protobuf.Imports
		if _, err := im.Compile(p3(fmt.Sprintf("import %q;", name)), false); err == nil || !strings.Contains(err.Error(), "add a reference with that name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAnErrorSaysWhatAndWhere(t *testing.T) {
	for text, want := range map[string]string{
		"message M {": "line 1, column 12: syntax error",
		p3("message M {\n  int32 a = 1;\n  int32 b = 1;\n}"): "line 4, column 13: message M: fields a and b both have the same tag 1",
		p3("message M { N n = 1; }"):                         "field M.n: unknown type N",
		p3("import \"a.proto\"; message M {}"):               `nothing is known as "a.proto", which is imported; add a reference with that name`,
		p3("message M {} message M {}"):                      `"M" already defined`,
		p3("message M { option nonsense = 1; }"):             "nonsense",
		"edition = \"2099\"; message M {}":                   "2099",
		"{\"type\":\"record\"}":                              "line 1, column 1: syntax error",
	} {
		var im protobuf.Imports
		if _, err := im.Compile(text, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
}

// As with Confluent: a schema and what it imports may refer to two versions of
// one file.
func TestOfTwoTextsWithOneNameTheFirstCounts(t *testing.T) {
	s := compile(
		t, p3("import \"a.proto\"; message M { A a = 1; }"),
		"a.proto", p3("message A { int32 x = 1; }"),
		"a.proto", p3("message A { string x = 1; }"),
	)
	old := compile(t, p3("import \"a.proto\"; message M { A a = 1; }"), "a.proto", p3("message A { int32 x = 1; }"))
	holds(t, rule{backward: true, forward: true, source: schemaDiff}, old, s)
}

func TestOneTextUnderTwoNamesIsOneFile(t *testing.T) {
	const a = "syntax = \"proto3\"; package d; message A { int32 x = 1; }"
	compile(
		t, p3("import \"a.proto\"; import \"b.proto\"; import \"c.proto\"; message M { d.A a = 1; C c = 2; }"),
		"a.proto", a, "b.proto", a,
		"c.proto", p3("import \"b.proto\"; message C { d.A a = 1; }"),
	)
}

func TestANameThatCannotBeImported(t *testing.T) {
	var im protobuf.Imports
	if err := im.Add("default", p3("")); err == nil || !strings.Contains(err.Error(), "another name") {
		t.Error(err)
	}
	// What every registry has stays what it is, whoever sends it along.
	compile(
		t, p3("import \"google/protobuf/timestamp.proto\"; message M { google.protobuf.Timestamp at = 1; }"),
		"google/protobuf/timestamp.proto", "no schema",
	)
	// As a schema of its own it is like any other.
	compile(t, p3("package google.protobuf; message Timestamp { int64 seconds = 1; int32 nanos = 2; }"))
	compile(t, p3("package google.type; import \"google/protobuf/duration.proto\"; message Date { int32 year = 1; }"))
}

// Confluent takes imports that are not there where nothing needs them, and
// options that nobody defines. Its topic must be served.
func TestWhatIsKeptIsReadWithoutWhatIsMissing(t *testing.T) {
	text := p3(`import "validate/validate.proto"; import "a.proto"; option (file) = 1;
message M { string a = 1 [(validate.rules).string.min_len = 1, deprecated = true]; A b = 2; oneof o { option (x) = 1; int32 c = 3; } google.protobuf.Timestamp at = 4; }
enum E { Z = 0 [(y) = 1]; } service S { option (z) = 1; rpc R (M) returns (M) { option (q) = {}; } }`)
	var im protobuf.Imports
	if err := im.Add("a.proto", p3("import \"gone.proto\"; message A { option (w) = 1; }")); err != nil {
		t.Fatal(err)
	}
	if _, err := im.Compile(text, false); err == nil {
		t.Error("a new one was taken")
	}
	s, err := im.Compile(text, true)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, rule{backward: true, forward: true, source: schemaDiff}, s,
		compile(t, p3("import \"a.proto\"; import \"google/protobuf/timestamp.proto\"; message M { string a = 1; A b = 2; oneof o { int32 c = 3; } google.protobuf.Timestamp at = 4; } enum E { Z = 0; }"), "a.proto", p3("message A {}")))
	if _, err := im.Compile(p3("message M { Nowhere n = 1; }"), true); err == nil || !strings.Contains(err.Error(), "unknown type Nowhere") {
		t.Errorf("a type that is missing: %v", err)
	}
}

// hostile are texts that ask for much, and why they are refused before anybody
// reads them; the last are taken, or refused by the language.
func hostile() []struct{ name, text, why string } {
	repeat := strings.Repeat
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i+1)
		}
		return b.String()
	}
	nested := func(depth int, in string) string {
		return repeat("message "+repeat("n", 250)+"{\n", depth) + in + repeat("}", depth)
	}
	return []struct{ name, text, why string }{
		{"nested messages", repeat("message M{\n", 60_000) + repeat("}\n", 60_000), "brackets"},
		{"nested messages that the language forbids", repeat("message M{\n", 50) + repeat("}\n", 50), "depth"},
		{"nested literals", "option (x) = " + repeat("{a:\n", 100_000) + "1" + repeat("}\n", 100_000) + ";", "brackets"},
		{"lists", "option (x) = " + repeat("[\n", 100_000), "brackets"},
		{"fields with long names", p3("message N{}" + nested(30, lines(18_000, "N f%d=1;"))), "too long for their number"},
		{"an enum with long names", p3(nested(30, "enum E{"+lines(30_000, "V%[1]d=%[1]d;")+"}")), "too long for their number"},
		{"a long name", "message " + repeat("a", 60_000) + "{}", "a name is longer"},
		{"a long package", "package " + repeat("a.\n", 200_000) + "a; message M{}", "words and signs"},
		{"a package that the language forbids", "package " + repeat("a.\n", 300) + "a; message M{}", "package name"},
		{"imports", p3(lines(3000, `import "%d";`)), "imports more than 1000 files"},
		{"a line", p3(repeat("import \"a\";", 10_000)), "a line is longer"},
		{"semicolons", repeat(";\n", 300_000), "words and signs"},
		{"a large text", repeat("// nothing\n", 800_000), "it is larger"},
		{"base64", repeat("AAAA\n", 100_000), "syntax error"},
		{"base64 of levels", base64.StdEncoding.EncodeToString(levels(3000)), "a name is longer"},
		{"a comment that does not end", "/*" + repeat("/* ", 20_000), ""},
		{"a string that does not end", `option x = "` + repeat("a\\", 20_000), ""},
		{"strings", "option x = " + repeat("\"a\"\n", 10_000) + ";", ""},
		{"fields", m3("message N{}\n" + lines(5000, "N f%[1]d=%[1]d;")), ""},
		{"reserved numbers", m2("reserved\n" + lines(5000, "%d,") + "9000; optional int32 a=9001;"), ""},
		{"options", p3(repeat("option java_package=\"a\";\n", 2000)), ""},
		{"oneofs", m3(repeat("oneof o{int32 a=1;}\n", 2000)), ""},
	}
}

// levels is a descriptor of messages within messages.
func levels(n int) []byte {
	var m []byte
	for range n {
		m = append(append([]byte{0x1a}, varint(len(m))...), m...) // nested_type
	}
	return append(append([]byte{0x22}, varint(len(m))...), m...) // message_type
}

func varint(n int) []byte {
	var out []byte
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}

func TestHostileTextsAreRefusedBeforeTheyCostMuch(t *testing.T) {
	for _, c := range hostile() {
		_, err := protobuf.Canonical(c.text)
		if c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %.200v, want %s", c.name, err, c.why)
		}
		var im protobuf.Imports
		if _, again := im.Compile(c.text, true); err != nil && again == nil {
			t.Errorf("%s: taken as kept", c.name)
		}
	}
}

// Each of a row of files has a field of the type before it, twice: as many ways
// lead to the first as two to the power of their number.
func TestMessagesThatMeetAgainAreComparedOnce(t *testing.T) {
	row := func(typ string) *protobuf.Schema {
		files := []string{"f0", p3("message M0 { " + typ + " a = 1; }")}
		for i := 1; i < 60; i++ {
			files = append(files, fmt.Sprintf("f%d", i), p3(fmt.Sprintf("import \"f%d\"; message M%d { M%d a = 1; M%d b = 2; }", i-1, i, i-1, i-1)))
		}
		return compile(t, p3("import \"f59\"; message M { M59 a = 1; }"), files...)
	}
	holds(t, rule{source: fieldDiff}, row("int32"), row("string"))
}
