package compat_test

import (
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/registry/compat"
)

// rule is a pair of schemas, whether the later one reads what was written with
// the earlier one (backward), whether the reverse holds (forward), and where it
// is said.
type rule struct {
	name              string
	earlier, later    string
	backward, forward bool
	source            string
	// java is why Apache Avro for Java says otherwise, "" if it says the same.
	java string
}

// Where rules come from. The specification is that of Avro 1.12.
const (
	resolution = "specification, Schema Resolution"
	aliases    = "specification, Aliases"
	names      = "specification, Names"
	records    = "specification, Complex Types, Records"
	enums      = "specification, Complex Types, Enums"
	logical    = "specification, Logical Types"
	confluent  = "Confluent, AvroCompatibilityTest"
	java       = "Java, SchemaCompatibility"
)

func rules() []rule {
	var all []rule
	for _, part := range [][]rule{fieldRules(), defaultRules(), typeRules(), enumRules(), nameRules(), aliasRules(), unionRules(), nestedRules(), logicalRules(), attributeRules()} {
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
			earlier := []compat.Version{{Number: 1, Schema: avro.MustParse(c.earlier)}}
			later := avro.MustParse(c.later)
			for level, want := range map[compat.Level]bool{
				compat.None: true, compat.Backward: c.backward, compat.Forward: c.forward,
				compat.BackwardTransitive: c.backward, compat.ForwardTransitive: c.forward,
				compat.Full: c.backward && c.forward, compat.FullTransitive: c.backward && c.forward,
			} {
				got := compat.Check(level, later, earlier)
				if (len(got) == 0) != want {
					t.Errorf("%s: compatible %v, want %v (%s): %v", level, !want, want, c.source, got)
				}
				for _, r := range got {
					helps(t, r.String())
				}
			}
		})
	}
	if len(seen) < 120 {
		t.Errorf("%d rules", len(seen))
	}
}

// helps wants a reason to name the place, the version and the mend.
func helps(t *testing.T, reason string) {
	t.Helper()
	place := strings.HasPrefix(reason, `at field "`) || strings.HasPrefix(reason, "at the top of the schema, ")
	if !place || !strings.Contains(reason, "version 1") || !strings.Contains(reason, "; to mend, ") || strings.Contains(reason, "keep this part as it was") {
		t.Errorf("it does not help: %s", reason)
	}
}

// rec is a record n.T with fields.
func rec(fields string) string {
	return `{"type":"record","name":"T","namespace":"n","fields":[` + fields + `]}`
}

// field is a record n.T with one field f of a type.
func field(typ string) string { return rec(`{"name":"f","type":` + typ + `}`) }

const (
	fA  = `{"name":"a","type":"string"}`
	inI = `{"type":"record","name":"I","fields":[]}`
)
