package protobuf_test

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/protobuf"
)

// What is imported counts where a field has it as its type, by the examples of
// SchemaDiffTest.
func TestWhatIsImportedIsComparedWhereItIsUsed(t *testing.T) {
	home := func(pkg, typ string) string {
		return p3("package " + pkg + "; message Home { " + typ + " id = 1; message In { " + typ + " id = 1; } }")
	}
	user := func(file, typ string) string {
		return p3("import \"" + file + "\"; message M { " + typ + " h = 1; }")
	}
	local := p3("message M { Home h = 1; } message Home { int32 id = 1; }")
	for _, c := range []struct {
		name              string
		earlier, later    []string // a text, then imports and their names
		backward, forward bool
	}{
		{"the same", []string{user("a.proto", "d.Home"), "a.proto", home("d", "int32")}, []string{user("a.proto", "d.Home"), "a.proto", home("d", "int32")}, true, true},
		{"another type within", []string{user("a.proto", "d.Home"), "a.proto", home("d", "int32")}, []string{user("b.proto", "d.Home"), "b.proto", home("d", "string")}, false, false},
		{"one name, another text", []string{user("a.proto", "d.Home"), "a.proto", home("d", "int32")}, []string{user("a.proto", "d.Home"), "a.proto", home("d", "string")}, false, false},
		{"another type that reads", []string{user("a.proto", "d.Home"), "a.proto", home("d", "int32")}, []string{user("a.proto", "d.Home"), "a.proto", home("d", "int64")}, true, true},
		{"another package", []string{user("a.proto", "d.Home"), "a.proto", home("d", "int32")}, []string{user("b.proto", "e.Home"), "b.proto", home("e", "int32")}, true, true},
		{"another package, nested", []string{user("a.proto", "d.Home.In"), "a.proto", home("d", "int32")}, []string{user("b.proto", "e.Home.In"), "b.proto", home("e", "int32")}, true, true},
		{"another package and type, nested", []string{user("a.proto", "d.Home.In"), "a.proto", home("d", "int32")}, []string{user("b.proto", "e.Home.In"), "b.proto", home("e", "string")}, false, false},
		{"another message", []string{user("a.proto", "d.Home"), "a.proto", home("d", "int32")}, []string{user("a.proto", "d.Home.In"), "a.proto", home("d", "int32")}, false, false},
		{"moved to an import", []string{local}, []string{user("a.proto", "d.Home"), "a.proto", p3("package d; message Home { int32 id = 1; }")}, false, true},
		{"moved from an import", []string{user("a.proto", "d.Home"), "a.proto", p3("package d; message Home { int32 id = 1; }")}, []string{local}, true, false},
		{"imported and not used", []string{p3("import \"a.proto\"; message M {}"), "a.proto", home("d", "int32")}, []string{p3("import \"a.proto\"; message M {}"), "a.proto", home("d", "string")}, true, true},
		{"imported by an import", []string{user("b.proto", "d.Home"), "a.proto", home("d", "int32"), "b.proto", p3("import public \"a.proto\";")}, []string{user("b.proto", "d.Home"), "a.proto", home("d", "string"), "b.proto", p3("import public \"a.proto\";")}, false, false},
		{"used by what is imported", []string{user("b.proto", "B"), "a.proto", home("d", "int32"), "b.proto", p3("import \"a.proto\"; message B { d.Home h = 1; B b = 2; }")}, []string{user("b.proto", "B"), "a.proto", home("d", "string"), "b.proto", p3("import \"a.proto\"; message B { d.Home h = 1; B b = 2; }")}, false, false},
		{"values of a map", []string{user("a.proto", "map<string, d.Home>"), "a.proto", home("d", "int32")}, []string{user("a.proto", "map<string, d.Home>"), "a.proto", home("d", "string")}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			earlier, later := compile(t, c.earlier[0], c.earlier[1:]...), compile(t, c.later[0], c.later[1:]...)
			holds(t, rule{backward: c.backward, forward: c.forward, source: examples}, earlier, later)
		})
	}
}

func TestEveryVersionCountsOnlyWhereTheLevelIsTransitive(t *testing.T) {
	text, number := compile(t, m3("string a = 1;")), compile(t, m3("int32 a = 1;"))
	versions := []protobuf.Version{{Number: 1, Schema: text}, {Number: 2, Schema: number}}
	for level, want := range map[compat.Level]string{
		compat.None: "", compat.Backward: "", compat.Forward: "", compat.Full: "",
		compat.BackwardTransitive: "the new schema cannot read data of version 1",
		compat.ForwardTransitive:  "programs at version 1 cannot read data of the new schema",
	} {
		got := protobuf.Check(level, number, versions)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), want)) {
			t.Errorf("%s: %v", level, got)
		}
	}
	if got := protobuf.Check(compat.FullTransitive, number, versions); len(got) != 2 {
		t.Errorf("both ways: %v", got)
	}
}

func TestAReasonNamesPlaceVersionAndMend(t *testing.T) {
	for _, c := range []struct {
		earlier, later string
		want           []string
	}{
		{m3("int32 a = 1;"), m3("string b = 1;"), []string{
			`at field "n.M.b", the new schema cannot read data of version 1: incompatible types (written as int32, read as string); to mend, keep the type; add a field with a number of its own for the new one`,
			`at field "n.M.a", programs at version 1 cannot read data of the new schema: incompatible types (written as string, read as int32); to mend, keep the type; add a field with a number of its own for the new one`,
		}},
		{p3("package n; message M {} message N {}"), p3("package n; message M {}"), []string{
			`at message "n.N", the new schema cannot read data of version 1: the message is missing there; to mend, keep the message, even if nothing uses it, in its place in the file`,
		}},
		{p3("package a;"), p3("package b;"), []string{
			`at the package, the new schema cannot read data of version 1: every message has another name (written as "a", read as "b"); to mend, keep the package; register another one under a subject of its own`,
			`at the package, programs at version 1 cannot read data of the new schema: every message has another name (written as "b", read as "a"); to mend, keep the package; register another one under a subject of its own`,
		}},
		{m3("string a = 1; string b = 2;"), m3("oneof o { string a = 1; string b = 2; }"), []string{
			`at oneof "n.M.o", the new schema cannot read data of version 1: fields that were set together exclude each other there (a, b); to mend, keep the fields where they are; new members of a oneof have numbers of their own`,
		}},
		{m2("optional string a = 1;"), m2("required string a = 1;"), []string{
			`at field "n.M.a", the new schema cannot read data of version 1: it is required there and may be missing in the data (written as optional, read as required); to mend, make it optional`,
		}},
	} {
		got := protobuf.Check(compat.Full, compile(t, c.later), []protobuf.Version{{Number: 1, Schema: compile(t, c.earlier)}})
		for i, r := range got {
			if i >= len(c.want) || r.String() != c.want[i] {
				t.Errorf("%s", r)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%d reasons, want %d", len(got), len(c.want))
		}
	}
}
