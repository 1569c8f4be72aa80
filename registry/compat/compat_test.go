package compat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/registry/compat"
)

func record(fields string) string {
	return `{"type":"record","name":"T","namespace":"n","fields":[` + fields + `]}`
}

func enum(symbols, rest string) string {
	return record(`{"name":"e","type":{"type":"enum","name":"E","symbols":[` + symbols + `]` + rest + `}}`)
}

// Each case says which directions hold between an earlier and a later schema.
func TestResolutionRulesThatRegistriesGetWrong(t *testing.T) {
	a := `{"name":"a","type":"string"}`
	cases := []struct {
		name, earlier, later string
		backward, forward    bool
	}{
		{"same", record(a), record(a), true, true},
		{"field added with explicit null default", record(a), record(a + `,{"name":"b","type":["null","string"],"default":null}`), true, true},
		{"nullable field added without default", record(a), record(a + `,{"name":"b","type":["null","string"]}`), false, true},
		{"field with default removed", record(a + `,{"name":"b","type":"int","default":1}`), record(a), true, true},
		{"field without default removed", record(a + `,{"name":"b","type":"int"}`), record(a), true, false},
		{"default taken away", record(`{"name":"a","type":"string","default":""}`), record(a), true, true},
		{"enum symbol removed without default", enum(`"A","B"`, ``), enum(`"A"`, ``), false, true},
		{"enum symbol removed with default", enum(`"A","B"`, `,"default":"A"`), enum(`"A"`, `,"default":"A"`), true, true},
		{"enum symbol added without default", enum(`"A"`, ``), enum(`"A","B"`, ``), true, false},
		{"enum symbol added with default", enum(`"A"`, `,"default":"A"`), enum(`"A","B"`, `,"default":"A"`), true, true},
		{"enum default that only the field has", enum(`"A","B"`, ``), record(`{"name":"e","type":{"type":"enum","name":"E","symbols":["A"]},"default":"A"}`), false, true},
		{"renamed with alias", record(a), record(`{"name":"z","type":"string","aliases":["a"]}`), true, false},
		{"renamed without alias", record(a), record(`{"name":"z","type":"string"}`), false, false},
		{"int to long", record(`{"name":"a","type":"int"}`), record(`{"name":"a","type":"long"}`), true, false},
		{"string to bytes, either way", record(a), record(`{"name":"a","type":"bytes"}`), true, true},
		{"long to string", record(`{"name":"a","type":"long"}`), record(a), false, false},
		{"made nullable", record(a), record(`{"name":"a","type":["null","string"],"default":null}`), true, false},
		{
			"record in union gains a field with default",
			record(`{"name":"a","type":["null",{"type":"record","name":"I","fields":[]}]}`),
			record(`{"name":"a","type":["null",{"type":"record","name":"I","fields":[{"name":"x","type":"int","default":0}]}]}`), true, true,
		},
		{
			"record in union gains a field without default",
			record(`{"name":"a","type":["null",{"type":"record","name":"I","fields":[]}]}`),
			record(`{"name":"a","type":["null",{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}]}`), false, true,
		},
		{
			"record in union renamed with alias",
			record(`{"name":"a","type":["null",{"type":"record","name":"I","fields":[]}]}`),
			record(`{"name":"a","type":["null",{"type":"record","name":"J","aliases":["I"],"fields":[]}]}`), true, false,
		},
		{"union gains a branch", record(`{"name":"a","type":["null","string"]}`), record(`{"name":"a","type":["null","string","long"]}`), true, false},
		{"namespace in the name", record(a), `{"type":"record","name":"n.T","fields":[` + a + `]}`, true, true},
		{"another record", record(a), `{"type":"record","name":"n.U","fields":[` + a + `]}`, false, false},
		{
			"fixed of another size",
			record(`{"name":"a","type":{"type":"fixed","name":"F","size":4}}`),
			record(`{"name":"a","type":{"type":"fixed","name":"F","size":8}}`), false, false,
		},
		{
			"decimal of another scale",
			record(`{"name":"a","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}}`),
			record(`{"name":"a","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":3}}`), false, false,
		},
		{
			"recursive record",
			record(`{"name":"next","type":["null","T"],"default":null}`),
			record(`{"name":"next","type":["null","T"],"default":null},{"name":"x","type":"int","default":0}`), true, true,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			earlier := []compat.Version{{Number: 1, Schema: avro.MustParse(c.earlier)}}
			later := avro.MustParse(c.later)
			for level, want := range map[compat.Level]bool{
				compat.None: true, compat.Backward: c.backward, compat.Forward: c.forward,
				compat.Full: c.backward && c.forward, compat.FullTransitive: c.backward && c.forward,
			} {
				if got := compat.Check(level, later, earlier); (len(got) == 0) != want {
					t.Errorf("%s: compatible %v, want %v: %v", level, !want, want, got)
				}
			}
		})
	}
}

func TestReasonNamesFieldVersionAndMend(t *testing.T) {
	earlier := []compat.Version{{Number: 7, Schema: avro.MustParse(record(`{"name":"in","type":{"type":"record","name":"I","fields":[]}}`))}}
	later := avro.MustParse(record(`{"name":"in","type":{"type":"record","name":"I","fields":[{"name":"email","type":"string"}]}}`))
	got := fmt.Sprint(compat.Check(compat.Full, later, earlier))
	for _, want := range []string{`"in.email"`, "version 7", "give the new field a default"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
}

func TestOnlyTransitiveLevelsLookBeyondTheLatest(t *testing.T) {
	versions := []compat.Version{
		{Number: 1, Schema: avro.MustParse(record(`{"name":"a","type":"int"}`))},
		{Number: 2, Schema: avro.MustParse(record(``))},
	}
	later := avro.MustParse(record(`{"name":"a","type":"string","default":""}`))
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
		return avro.MustParse(record(strings.Join(rapid.SliceOfNDistinct(field, 0, 3, name).Draw(t, "fields"), ",")))
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
