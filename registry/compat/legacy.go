package compat

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/twmb/avro"
)

// ParseLegacy reads a schema that a registry took before ours: older ones did
// not look at defaults, nor at the characters of names. Where a default does
// not fit its field, any that fits stands in for it: whether a field may be
// missing depends on that there is one, not on its value.
//
// It is for schemas that are there already and must be compared with. A
// value must not be read with one, for its defaults are not the written ones.
func ParseLegacy(known *avro.SchemaCache, text string) (*avro.Schema, error) {
	lax := avro.WithLaxNames(func(string) error { return nil })
	s, err := known.Parse(text, lax)
	if err == nil {
		return s, nil
	}
	mended, ok := mendDefaults(text)
	if !ok {
		return nil, err
	}
	if s, again := known.Parse(mended, lax); again == nil {
		return s, nil
	}
	return nil, err
}

// mendBudget bounds the parts of all defaults that are made up for a schema:
// a record of two records of two records and so on has as many as two to the
// power of its depth.
const mendBudget = 10_000

// defaults makes up defaults for the types of one schema.
type defaults struct {
	types  map[string]any // definitions by name, in full and as written
	budget int
}

func mendDefaults(text string) (string, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var root any
	if d.Decode(&root) != nil || d.More() {
		return "", false
	}
	m := &defaults{types: map[string]any{}, budget: mendBudget}
	m.collect(root, "")
	if m.mend(root) != nil {
		return "", false
	}
	var out bytes.Buffer
	if json.NewEncoder(&out).Encode(root) != nil {
		return "", false
	}
	return out.String(), true
}

// collect notes every definition of a name below v.
func (m *defaults) collect(v any, space string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			m.collect(e, space)
		}
	case map[string]any:
		if name, ok := v["name"].(string); ok && v["type"] != nil {
			if ns, ok := v["namespace"].(string); ok {
				space = ns
			}
			if i := strings.LastIndexByte(name, '.'); i >= 0 {
				space = name[:i]
			} else if _, isField := v["type"].(string); isField && space != "" {
				m.define(space+"."+name, v)
			}
			m.define(name, v)
		}
		for key, e := range v {
			if key != "default" {
				m.collect(e, space)
			}
		}
	}
}

func (m *defaults) define(name string, v map[string]any) {
	switch v["type"] {
	case "record", "error", "enum", "fixed":
		if _, taken := m.types[name]; !taken {
			m.types[name] = v
		}
	}
}

// mend gives every field below v that has a default one that fits.
func (m *defaults) mend(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := m.mend(e); err != nil {
				return err
			}
		}
	case map[string]any:
		fields, _ := v["fields"].([]any)
		for _, f := range fields {
			field, ok := f.(map[string]any)
			if _, has := field["default"]; !ok || !has {
				continue
			}
			fit, err := m.fit(field["type"])
			if err != nil {
				return err
			}
			field["default"] = fit
		}
		for _, key := range []string{"type", "fields", "items", "values"} {
			if err := m.mend(v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}
