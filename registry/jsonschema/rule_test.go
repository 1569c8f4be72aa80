package jsonschema_test

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/jsonschema"
)

// rule is a pair of schemas, what keeps the later one from reading what the
// earlier one allows (backward) and what keeps the reverse from it (forward),
// "" for nothing, and where it is said.
type rule struct {
	name              string
	earlier, later    string
	backward, forward jsonschema.Kind
	source            string
}

// Where rules come from: the parts of Confluent's json-schema-provider that
// compare, with the changes that its strict policy takes.
const (
	types      = "Confluent, SchemaDiff"
	strs       = "Confluent, StringSchemaDiff"
	nums       = "Confluent, NumberSchemaDiff"
	enums      = "Confluent, EnumSchemaDiff"
	consts     = "Confluent, ConstSchemaDiff"
	objects    = "Confluent, ObjectSchemaDiff"
	arrays     = "Confluent, ArraySchemaDiff"
	combos     = "Confluent, CombinedSchemaDiff"
	nots       = "Confluent, NotSchemaDiff"
	circles    = "Confluent, CircularRefSchemaDiffTest"
	connect    = "Confluent, SchemaDiff: connect.type"
	references = "specification, $ref"
	// ours is where the specification says that two texts mean the same, and
	// Confluent's registry tells them apart, or the reverse.
	ours = "specification, against Confluent"
)

const fine = jsonschema.Kind("")

func rules() []rule {
	var all []rule
	for _, part := range [][]rule{
		typeRules(), stringRules(), numberRules(), enumRules(), propertyRules(), restRules(), dependencyRules(),
		arrayRules(), tupleRules(), combinedRules(), notRules(), referenceRules(), draftRules(),
	} {
		all = append(all, part...)
	}
	return all
}

func TestEveryRuleHolds(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range rules() {
		t.Run(c.name, func(t *testing.T) {
			if seen[c.name] || c.source == "" {
				t.Error("a rule has a name of its own and a source")
			}
			seen[c.name] = true
			earlier := []jsonschema.Version{{Number: 1, Schema: parse(t, c.earlier)}}
			later := parse(t, c.later)
			for level, want := range map[compat.Level][]jsonschema.Kind{
				compat.None: nil, compat.Backward: {c.backward}, compat.Forward: {c.forward},
				compat.BackwardTransitive: {c.backward}, compat.ForwardTransitive: {c.forward},
				compat.Full: {c.backward, c.forward}, compat.FullTransitive: {c.backward, c.forward},
			} {
				got := jsonschema.Check(level, later, earlier)
				told := map[jsonschema.Kind]bool{}
				for _, r := range got {
					told[r.Kind] = true
					helps(t, r.String())
				}
				some := false
				for _, k := range want {
					some = some || k != fine
					if k != fine && !told[k] {
						t.Errorf("%s: told %v, want %s (%s)", level, got, k, c.source)
					}
				}
				if !some && len(got) > 0 {
					t.Errorf("%s: told %v, want nothing (%s)", level, got, c.source)
				}
			}
		})
	}
	if len(seen) < 150 {
		t.Errorf("%d rules", len(seen))
	}
}

// helps wants a reason to name the place, the version and the mend.
func helps(t *testing.T, reason string) {
	t.Helper()
	at := strings.HasPrefix(reason, `at "#/`) || strings.HasPrefix(reason, "at the top of the schema, ")
	if !at || !strings.Contains(reason, "version 1") || !strings.Contains(reason, "; to mend, ") || strings.Contains(reason, "keep this part as it was") {
		t.Errorf("it does not help: %s", reason)
	}
	for _, word := range []string{"READER", "WRITER", "EARLIER", "KEY"} {
		if strings.Contains(strings.ReplaceAll(reason, "_KEY", ""), word) {
			t.Errorf("%s is left in: %s", word, reason)
		}
	}
}

func parse(t testing.TB, text string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.Parse(text, nil, false)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// obj is an object with properties, and more keywords.
func obj(properties string, more ...string) string {
	return `{"type":"object","properties":{` + properties + `}` + strings.Join(append([]string{""}, more...), ",") + `}`
}

const (
	closed = `"additionalProperties":false`
	propA  = `"a":{"type":"string"}`
	propB  = `"b":{"type":"string"}`
)
