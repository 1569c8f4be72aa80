package compat

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/avro"
	"pgregory.net/rapid"
)

func TestADiffTellsWhatReadersCareAbout(t *testing.T) {
	t.Parallel()
	from := avro.MustParse(`{"type":"record","name":"a.Order","fields":[
		{"name":"id","type":"string"},
		{"name":"gone","type":"int","default":7},
		{"name":"total","type":"int"},
		{"name":"old_name","type":"string"},
		{"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","LOST"]}},
		{"name":"again","type":["null","State"],"default":null},
		{"name":"lines","type":{"type":"array","items":{"type":"record","name":"Line","fields":[{"name":"n","type":"long"}]}}},
		{"name":"next","type":["null","Order"],"default":null}]}`)
	to := avro.MustParse(`{"type":"record","name":"a.Order","fields":[
		{"name":"id","type":"string"},
		{"name":"note","type":["null","string"],"default":null},
		{"name":"total","type":{"type":"long","logicalType":"timestamp-micros"},"default":1},
		{"name":"name","type":"string","aliases":["old_name"]},
		{"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","DONE"],"default":"NEW"}},
		{"name":"again","type":["null","State"],"default":null},
		{"name":"lines","type":{"type":"array","items":{"type":"record","name":"Line","fields":[{"name":"n","type":"long"},{"name":"m","type":"long"}]}}},
		{"name":"next","type":["null","Order"],"default":null}]}`)
	want := []Change{
		{"note", Added, "null or string, default null"},
		{"total", Changed, "int is now long as timestamp-micros"},
		{"total", Changed, "default 1, before: no default"},
		{"name", Changed, "was called old_name"},
		{"state", Added, "symbol DONE"},
		{"state", Removed, "symbol LOST"},
		{"state", Changed, "symbol for unknown ones: NEW, before: none"},
		{"lines[].m", Added, "long, no default"},
		{"gone", Removed, "int, default 7"},
	}
	if got := Diff(from, to); !slices.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
	if got := Diff(from, from); len(got) > 0 {
		t.Errorf("of itself: %v", got)
	}
	if v := Readers(from, to); v.NewReadsOld == nil || v.OldReadsNew == nil {
		t.Errorf("%+v", v)
	}
}

// What is added one way is removed the other way.
func TestADiffIsMirrored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawRecord(rt, "a"), drawRecord(rt, "b")
		there, back := Diff(a, b), Diff(b, a)
		for kind, mirror := range map[Kind]Kind{Added: Removed, Removed: Added, Changed: Changed} {
			if x, y := paths(there, kind), paths(back, mirror); !slices.Equal(x, y) {
				rt.Errorf("%s %v, the other way %s %v", kind, x, mirror, y)
			}
		}
	})
}

func paths(changes []Change, kind Kind) (out []string) {
	for _, c := range changes {
		if c.Kind == kind {
			out = append(out, c.Path)
		}
	}
	slices.Sort(out)
	return out
}

func drawRecord(rt *rapid.T, label string) *avro.Schema {
	text := `{"type":"record","name":"R","fields":[`
	for i, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"p", "q", "r", "s"}), rapid.ID[string]).Draw(rt, label) {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"name":%q,"type":%s}`, name, rapid.SampledFrom([]string{
			`"int"`, `"string"`, `["null","int"]`, `{"type":"array","items":"int"}`, `{"type":"map","values":["null","string"]}`,
		}).Draw(rt, "type"))
	}
	return avro.MustParse(text + `]}`)
}

func TestFieldsAreListedWithThoseWithin(t *testing.T) {
	t.Parallel()
	got := Fields(avro.MustParse(`{"type":"record","name":"a.Order","fields":[
		{"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","DONE"]},"default":"NEW","doc":"Where it stands."},
		{"name":"lines","type":["null",{"type":"array","items":{"type":"record","name":"Line","fields":[{"name":"n","type":"long"}]}}],"default":null},
		{"name":"next","type":["null","Order"],"default":null}]}`))
	want := []Field{
		{Path: "state", Type: "enum a.State", Default: "NEW", Doc: "Where it stands.", Symbols: "NEW, DONE"},
		{Path: "lines", Type: "null or array of record a.Line", Default: "null", Optional: true},
		{Path: "lines[].n", Type: "long"},
		{Path: "next", Type: "null or record a.Order", Default: "null", Optional: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
