package compat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/registry/compat"
)

func TestReasonNamesFieldVersionAndMend(t *testing.T) {
	earlier := []compat.Version{{Number: 7, Schema: avro.MustParse(rec(`{"name":"in","type":{"type":"record","name":"I","fields":[]}}`))}}
	later := avro.MustParse(rec(`{"name":"in","type":{"type":"record","name":"I","fields":[{"name":"email","type":"string"}]}}`))
	got := fmt.Sprint(compat.Check(compat.Full, later, earlier))
	for _, want := range []string{`"in.email"`, "version 7", "give the new field a default"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
}

func TestOnlyTransitiveLevelsLookBeyondTheLatest(t *testing.T) {
	versions := []compat.Version{
		{Number: 1, Schema: avro.MustParse(rec(`{"name":"a","type":"int"}`))},
		{Number: 2, Schema: avro.MustParse(rec(``))},
	}
	later := avro.MustParse(rec(`{"name":"a","type":"string","default":""}`))
	if got := compat.Check(compat.Full, later, versions); len(got) != 0 {
		t.Errorf("FULL: %v", got)
	}
	got := compat.Check(compat.FullTransitive, later, versions)
	if len(got) != 2 || got[0].Version != 1 {
		t.Errorf("FULL_TRANSITIVE: %v", got)
	}
}

// A schema that passes backward must really read what was written before.
func TestPassingBackwardMeansOldDataIsRead(t *testing.T) {
	field := rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		typ := rapid.SampledFrom([]string{`"int","default":1`, `"long"`, `"string","default":"x"`, `["null","int"],"default":null`, `"double"`}).Draw(t, "type")
		return `{"name":"` + name + `","type":` + typ + `}`
	})
	name := func(f string) string { return f[:12] }
	schema := rapid.Custom(func(t *rapid.T) *avro.Schema {
		return avro.MustParse(rec(strings.Join(rapid.SliceOfNDistinct(field, 0, 3, name).Draw(t, "fields"), ",")))
	})
	rapid.Check(t, func(t *rapid.T) {
		earlier, later := schema.Draw(t, "earlier"), schema.Draw(t, "later")
		if len(compat.Check(compat.Backward, later, []compat.Version{{Number: 1, Schema: earlier}})) > 0 {
			return
		}
		all := map[string]any{"a": 1, "b": 1, "c": 1}
		for _, f := range earlier.Root().Fields {
			if f.Type.Type == "string" {
				all[f.Name] = "s"
			}
		}
		body, err := earlier.Encode(all)
		if err != nil {
			t.Fatal(err)
		}
		read, err := avro.Resolve(earlier, later)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if rest, err := read.Decode(body, &v); err != nil || len(rest) > 0 {
			t.Fatalf("%v, %d bytes left", err, len(rest))
		}
	})
}
