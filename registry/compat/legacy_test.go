package compat_test

import (
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/registry/compat"
)

// Schemas that registries took before defaults and names were looked at.
func TestLegacySchemasLoadAndAreCompared(t *testing.T) {
	const b = `{"name":"b","type":"int","default":1}`
	for name, f := range map[string]string{
		"default of no branch":             `{"name":"f","type":["null","string"],"default":7}`,
		"null as default of a string":      `{"name":"f","type":"string","default":null}`,
		"text as default of an int":        `{"name":"f","type":"int","default":"0"}`,
		"text as default of a boolean":     `{"name":"f","type":"boolean","default":"false"}`,
		"unknown symbol as default":        `{"name":"f","type":{"type":"enum","name":"E","symbols":["A"]},"default":"B"}`,
		"null as default of an array":      `{"name":"f","type":{"type":"array","items":"int"},"default":null}`,
		"list as default of a map":         `{"name":"f","type":{"type":"map","values":"int"},"default":[]}`,
		"empty record that lacks a field":  `{"name":"f","type":{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]},"default":{}}`,
		"fixed of another size as default": `{"name":"f","type":{"type":"fixed","name":"F","size":4},"default":"x"}`,
		"default of a name":                `{"name":"g","type":` + inI + `},{"name":"f","type":"I","default":null}`,
		"default of a full name":           `{"name":"g","type":` + inI + `},{"name":"f","type":"n.I","default":null}`,
		"a name with a dash":               `{"name":"f-g","type":"string","default":""}`,
		"two floors down":                  `{"name":"g","type":{"type":"array","items":{"type":"record","name":"J","fields":[{"name":"f","type":"long","default":"1"}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			text := rec(f)
			if _, err := avro.Parse(text); err == nil {
				t.Fatal("it is no legacy")
			}
			old, err := compat.ParseLegacy(&avro.SchemaCache{}, text)
			if err != nil {
				t.Fatal(err)
			}
			later, err := compat.ParseLegacy(&avro.SchemaCache{}, rec(f+","+b))
			if err != nil {
				t.Fatal(err)
			}
			if got := compat.Check(compat.Full, later, []compat.Version{{Number: 1, Schema: old}}); len(got) > 0 {
				t.Error(got)
			}
			// The field has a default, if not a good one: it may be missing.
			if got := compat.Check(compat.Backward, old, []compat.Version{{Number: 1, Schema: avro.MustParse(rec(``))}}); len(got) > 0 && !strings.Contains(f, `"name":"g"`) {
				t.Error(got)
			}
		})
	}
}

func TestLegacyDoesNotMendWhatIsNoSchema(t *testing.T) {
	deep := `{"type":"record","name":"R0","fields":[{"name":"x","type":"int"}]}`
	for i := range 40 {
		n := string(rune('a' + i%26))
		deep = `{"type":"record","name":"` + n + strings.Repeat("x", i) + `","fields":[{"name":"p","type":` + deep + `}]}`
	}
	for _, text := range []string{
		``, `{`, `"unheard"`, `[]x`, `{"type":"record","name":"T","fields":[{"name":"f","type":"unheard","default":1}]}`,
		`{"type":"record","name":"L","fields":[{"name":"next","type":"L","default":"x"}]}`, // it would have to hold itself
		`{"type":"record","name":"T","fields":[{"name":"f","default":1}]}`,
		`{"type":"record","name":"T","fields":[{"name":"f","type":{"type":"fixed","name":"F","size":99999999},"default":1}]}`,
	} {
		if s, err := compat.ParseLegacy(&avro.SchemaCache{}, text); err == nil {
			t.Errorf("%s was read as %s", text, s)
		}
	}
	if _, err := compat.ParseLegacy(&avro.SchemaCache{}, deep); err != nil {
		t.Error(err)
	}
}
