package compat_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// maker writes a schema from choices. Both schemas of a pair come from one
// sequence of choices but for a few mutations, so that they are near to each
// other: two unrelated schemas are never compatible.
type maker struct {
	t      *rapid.T
	serial int
}

// pairsOf are pairs of neighbouring schemas.
func pairsOf() *rapid.Generator[pair] {
	return rapid.Custom(func(t *rapid.T) pair {
		m := &maker{t: t}
		r, w := m.record(2)
		return pair{r, w}
	})
}

func (m *maker) chance(percent int, label string) bool {
	return rapid.IntRange(0, 99).Draw(m.t, label) < percent
}

func (m *maker) name(prefix string) string {
	m.serial++
	return fmt.Sprintf("%s%d", prefix, m.serial)
}

// typ gives a type as the reader and as the writer have it.
func (m *maker) typ(depth int) (reader, writer string) {
	kinds := []string{"primitive", "primitive", "primitive", "union", "enum", "fixed"}
	if depth > 0 {
		kinds = append(kinds, "array", "map", "record", "union")
	}
	switch rapid.SampledFrom(kinds).Draw(m.t, "kind") {
	case "array":
		r, w := m.typ(depth - 1)
		return `{"type":"array","items":` + r + `}`, `{"type":"array","items":` + w + `}`
	case "map":
		r, w := m.typ(depth - 1)
		return `{"type":"map","values":` + r + `}`, `{"type":"map","values":` + w + `}`
	case "record":
		return m.record(depth - 1)
	case "union":
		return m.union(depth - 1)
	case "enum":
		return m.enum()
	case "fixed":
		return m.fixed()
	}
	r := m.primitive()
	if m.chance(85, "keep") {
		return r, r
	}
	return r, m.primitive()
}

func (m *maker) primitive() string {
	return rapid.SampledFrom([]string{`"null"`, `"boolean"`, `"int"`, `"long"`, `"float"`, `"double"`, `"string"`, `"bytes"`}).Draw(m.t, "primitive")
}

func (m *maker) union(depth int) (reader, writer string) {
	all := []string{`"null"`, `"boolean"`, `"int"`, `"long"`, `"float"`, `"double"`, `"string"`, `"bytes"`}
	r := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 4, rapid.ID[string]).Draw(m.t, "branches")
	w := slices.Clone(r)
	if depth >= 0 && m.chance(50, "named") {
		a, b := m.record(depth)
		r, w = append(r, a), append(w, b)
	}
	if m.chance(20, "narrow") && len(w) > 1 {
		w = w[1:]
	}
	if m.chance(10, "wide") {
		more := rapid.SampledFrom(all).Draw(m.t, "branch")
		if !slices.Contains(w, more) {
			w = append(w, more)
		}
	}
	if m.chance(15, "alone") {
		return "[" + strings.Join(r, ",") + "]", w[0]
	}
	return "[" + strings.Join(r, ",") + "]", "[" + strings.Join(w, ",") + "]"
}

// rename gives a named type another name in the reader at times, with or
// without an alias.
func (m *maker) rename(name string) (readerName, alias string) {
	switch {
	case m.chance(90, "same name"):
		return name, ""
	case m.chance(70, "alias"):
		return name + "x", `,"aliases":["` + name + `"]`
	}
	return name + "x", ""
}

func (m *maker) enum() (reader, writer string) {
	name := m.name("E")
	other, alias := m.rename(name)
	symbols := func() string {
		return `"` + strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 1, 3, rapid.ID[string]).Draw(m.t, "symbols"), `","`) + `"`
	}
	r := symbols()
	w := r
	if m.chance(25, "other symbols") {
		w = symbols()
	}
	fallback := ""
	if m.chance(40, "default") {
		fallback = `,"default":` + r[:3]
	}
	return `{"type":"enum","name":"` + other + `"` + alias + `,"symbols":[` + r + `]` + fallback + `}`,
		`{"type":"enum","name":"` + name + `","symbols":[` + w + `]}`
}

func (m *maker) fixed() (reader, writer string) {
	name, size := m.name("F"), rapid.IntRange(1, 3).Draw(m.t, "size")
	other, alias := m.rename(name)
	second := size
	if m.chance(10, "other size") {
		second++
	}
	return fmt.Sprintf(`{"type":"fixed","name":"%s"%s,"size":%d}`, other, alias, size), fmt.Sprintf(`{"type":"fixed","name":"%s","size":%d}`, name, second)
}

func (m *maker) record(depth int) (reader, writer string) {
	name := m.name("R")
	other, alias := m.rename(name)
	var r, w []string
	for range rapid.IntRange(0, 4).Draw(m.t, "fields") {
		m.field(depth, &r, &w)
	}
	if m.chance(20, "other order") {
		slices.Reverse(w)
	}
	return `{"type":"record","name":"` + other + `"` + alias + `,"fields":[` + strings.Join(r, ",") + `]}`,
		`{"type":"record","name":"` + name + `","fields":[` + strings.Join(w, ",") + `]}`
}

// field adds a field to both, or to one of them.
func (m *maker) field(depth int, r, w *[]string) {
	name := m.name("f")
	switch {
	case m.chance(8, "reader's own"):
		fallback := rapid.SampledFrom([]string{`"int"`, `"int","default":0`, `["null","int"],"default":null`, `["null","int"]`, `["int","null"]`}).Draw(m.t, "own")
		*r = append(*r, `{"name":"`+name+`","type":`+fallback+`}`)
		return
	case m.chance(8, "writer's own"):
		*w = append(*w, `{"name":"`+name+`","type":"int"}`)
		return
	}
	rt, wt := m.typ(depth)
	other, alias := m.rename(name)
	*r = append(*r, `{"name":"`+other+`"`+alias+`,"type":`+rt+`}`)
	*w = append(*w, `{"name":"`+name+`","type":`+wt+`}`)
}
