package jsonschema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// dependencies are what an object must have, or be, once it has a property.
type dependencies struct {
	names   map[string]map[string]bool
	schemas map[string]*jsonschema.Schema
}

// dependenciesOf reads dependencies as drafts up to 7 and as later ones write
// them.
func dependenciesOf(s *jsonschema.Schema) dependencies {
	out := dependencies{map[string]map[string]bool{}, map[string]*jsonschema.Schema{}}
	put := func(of string, names []string) {
		if len(names) == 0 {
			return
		}
		set := map[string]bool{}
		for _, n := range names {
			set[n] = true
		}
		out.names[of] = set
	}
	for of, v := range s.Dependencies {
		switch v := v.(type) {
		case []string:
			put(of, v)
		case *jsonschema.Schema:
			out.schemas[of] = v
		}
	}
	for of, names := range s.DependentRequired {
		put(of, names)
	}
	maps.Copy(out.schemas, s.DependentSchemas)
	return out
}

func (d *differ) dependencies(f *found, w, r *node) {
	before, after := dependenciesOf(w.from), dependenciesOf(r.from)
	for _, of := range slices.Sorted(maps.Keys(after.names)) {
		path, was, is := "/dependencies"+step(of), before.names[of], after.names[of]
		switch {
		case was == nil:
			f.add(DependencyAdded, path)
		case within(is, was):
		case within(was, is):
			f.add(DependencyExtended, path)
		default:
			f.add(DependencyChanged, path)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(after.schemas)) {
		path, was := "/dependencies"+step(of), before.schemas[of]
		if was == nil {
			f.add(DependencySchemaAdded, path)
			continue
		}
		f.join(path, d.compare(w.sub(was), r.sub(after.schemas[of])))
	}
}
