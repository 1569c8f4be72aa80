package protobuf_test

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/protobuf"
)

// rule is a pair of schemas, whether the later one reads what was written with
// the earlier one (backward), whether the reverse holds (forward), and where it
// is said.
type rule struct {
	name              string
	earlier, later    string
	backward, forward bool
	source            string
	// confluent is why Confluent's registry says otherwise, "" if it says the
	// same.
	confluent string
}

// Where rules come from: Confluent's comparison, by the part that has them, or
// its own examples; and the language guide, where we go further.
const (
	schemaDiff  = "Confluent, SchemaDiff"
	messageDiff = "Confluent, MessageSchemaDiff"
	fieldDiff   = "Confluent, FieldSchemaDiff"
	enumDiff    = "Confluent, EnumSchemaDiff"
	examples    = "Confluent, examples of SchemaDiffTest"
	updating    = "language guide, Updating A Message Type"
)

func rules() []rule {
	var all []rule
	for _, part := range [][]rule{messageRules(), fieldRules(), typeRules(), mapRules(), labelRules(), enumRules(), oneofRules(), otherRules()} {
		all = append(all, part...)
	}
	return all
}

func compile(t testing.TB, text string, imports ...string) *protobuf.Schema {
	t.Helper()
	var im protobuf.Imports
	for i := 0; i < len(imports); i += 2 {
		if err := im.Add(imports[i], imports[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	s, err := im.Compile(text, false)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

func TestEveryRuleHolds(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range rules() {
		t.Run(c.name, func(t *testing.T) {
			if seen[c.name] || c.source == "" {
				t.Error("a rule has a name of its own and a source")
			}
			seen[c.name] = true
			holds(t, c, compile(t, c.earlier), compile(t, c.later))
			// What a client without a parser sends is the same schema.
			holds(t, c, recompiled(t, c.earlier), recompiled(t, c.later))
		})
	}
	if len(seen) < 100 {
		t.Errorf("%d rules", len(seen))
	}
}

// recompiled is a schema as its descriptor in base64 has it.
func recompiled(t *testing.T, text string) *protobuf.Schema {
	t.Helper()
	raw, err := compile(t, text).Serialized()
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, raw)
}

func holds(t *testing.T, c rule, earlier, later *protobuf.Schema) {
	t.Helper()
	for level, want := range map[compat.Level]bool{
		compat.None: true, compat.Backward: c.backward, compat.Forward: c.forward,
		compat.BackwardTransitive: c.backward, compat.ForwardTransitive: c.forward,
		compat.Full: c.backward && c.forward, compat.FullTransitive: c.backward && c.forward,
	} {
		got := protobuf.Check(level, later, []protobuf.Version{{Number: 1, Schema: earlier}})
		if (len(got) == 0) != want {
			t.Errorf("%s: compatible %v, want %v (%s): %v", level, !want, want, c.source, got)
		}
		for _, r := range got {
			helps(t, r.String())
		}
	}
}

// helps wants a reason to name the place, the version and the mend.
func helps(t *testing.T, reason string) {
	t.Helper()
	place := strings.HasPrefix(reason, "at the package, ")
	for _, kind := range []string{"field", "message", "oneof"} {
		place = place || strings.HasPrefix(reason, "at "+kind+` "`)
	}
	if !place || !strings.Contains(reason, "version 1") || !strings.Contains(reason, "; to mend, ") || strings.Contains(reason, "keep this part as it was") {
		t.Errorf("it does not help: %s", reason)
	}
}

// p3 is a file of proto3, p2 one of proto2, ed one of edition 2023.
func p3(text string) string { return "syntax = \"proto3\";\n" + text }
func p2(text string) string { return "syntax = \"proto2\";\n" + text }
func ed(text string) string { return "edition = \"2023\";\n" + text }

// m3 is a message M of proto3 with a body, m2 one of proto2.
func m3(body string) string { return p3("package n; message M { " + body + " }") }
func m2(body string) string { return p2("package n; message M { " + body + " }") }
