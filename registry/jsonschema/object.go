package jsonschema

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// sub is the node of a schema within n, nil for none.
func (n *node) sub(s *jsonschema.Schema) *node { return n.forge.node(s) }

// rest is what a schema says of the properties, or items, that it does not name.
type rest struct {
	closed bool
	schema *node // nil where there is none
}

// wide is whether a schema that there may be none of takes everything.
func wide(n *node) bool { return n == nil || n.shape == anything }

func restOf(n *node, additional any) rest {
	switch a := additional.(type) {
	case bool:
		return rest{closed: !a}
	case *jsonschema.Schema:
		return rest{schema: n.sub(a)}
	}
	return rest{}
}

func (d *differ) objects(f *found, w, r *node) {
	d.required(f, w, r)
	d.properties(f, w, r)
	d.dependencies(f, w, r)
	d.rests(f, "/additionalProperties", PropertiesClosed, PropertiesNarrowed,
		restOf(w, w.from.AdditionalProperties), restOf(r, r.from.AdditionalProperties))
	d.unevaluated(f, "/unevaluatedProperties", UnevaluatedPropsClosed, UnevaluatedPropsNarrowed,
		w.sub(w.from.UnevaluatedProperties), r.sub(r.from.UnevaluatedProperties))
	f.most("maxProperties", MaxPropertiesAdded, MaxPropertiesDecreased, w.from.MaxProperties, r.from.MaxProperties)
	f.least("minProperties", MinPropertiesAdded, MinPropertiesIncreased, w.from.MinProperties, r.from.MinProperties)
}

func (d *differ) rests(f *found, path string, closed, narrowed Kind, w, r rest) {
	switch {
	case r.closed && !w.closed:
		f.add(closed, path)
	case w.closed != r.closed || wide(r.schema):
	case w.schema == nil:
		f.add(narrowed, path)
	default:
		f.join(path, d.compare(w.schema, r.schema))
	}
}

func (d *differ) unevaluated(f *found, path string, closed, narrowed Kind, w, r *node) {
	switch {
	case wide(r) || w != nil && w.shape == nothing:
	case r.shape == nothing:
		f.add(closed, path)
	case wide(w):
		f.add(narrowed, path)
	default:
		f.join(path, d.compare(w, r))
	}
}

// required looks at the properties that both declare.
func (d *differ) required(f *found, w, r *node) {
	for _, name := range slices.Sorted(maps.Keys(w.from.Properties)) {
		s := r.from.Properties[name]
		if s != nil && !needs(w, name) && needs(r, name) && !hasDefault(s) {
			f.add(RequiredAdded, "/required"+step(name))
		}
	}
}

func needs(n *node, name string) bool { return slices.Contains(n.from.Required, name) }

func hasDefault(s *jsonschema.Schema) bool {
	_, ok := rawOf(s)["default"]
	return ok
}

func (d *differ) properties(f *found, w, r *node) {
	names := maps.Clone(w.from.Properties)
	if names == nil {
		names = map[string]*jsonschema.Schema{}
	}
	maps.Copy(names, r.from.Properties)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		path := "/properties" + step(name)
		before, after := w.from.Properties[name], r.from.Properties[name]
		switch {
		case after == nil:
			d.removed(f, path, name, w.sub(before), r)
		case before == nil:
			d.added(f, path, name, w, r)
		default:
			f.join(path, d.compare(w.sub(before), r.sub(after)))
		}
	}
}

// removed is a property that the reader does not declare: it depends on the
// reader's other properties.
func (d *differ) removed(f *found, path, name string, before, r *node) {
	if open(r) {
		return
	}
	if s := covering(r, name); s != nil {
		if more := d.compare(before, s); len(more) > 0 {
			f.join(path, more)
			f.add(RemovedNotCovered, path)
		}
		return
	}
	if before.shape != nothing {
		f.add(RemovedFromClosed, path)
	}
}

// added is a property that the writer does not declare: it depends on what the
// writer lets other properties be.
func (d *differ) added(f *found, path, name string, w, r *node) {
	s := r.from.Properties[name]
	after, needed := r.sub(s), needs(r, name)
	if open(w) {
		switch {
		case after.shape == anything:
		case needed && hasDefault(s):
			f.add(RequiredDefaultAddedToOpen, path)
		case needed:
			f.add(RequiredAddedToOpen, path)
		default:
			f.add(OptionalAddedToOpen, path)
		}
		return
	}
	if c := covering(w, name); c != nil {
		if more := d.compare(c, after); len(more) > 0 {
			f.join(path, more)
			f.add(AddedNotCovered, path)
		}
	}
	if needed && !hasDefault(s) {
		f.add(RequiredAddedToUnopen, path)
	}
}

// open is whether an object may have any property besides those declared.
func open(n *node) bool {
	other := restOf(n, n.from.AdditionalProperties)
	return !other.closed && wide(other.schema) && len(n.from.PatternProperties) == 0 && wide(n.sub(n.from.UnevaluatedProperties))
}

// covering is what a property that is not declared must be, nil if nothing says.
func covering(n *node, name string) *node {
	patterns := slices.SortedFunc(maps.Keys(n.from.PatternProperties), func(a, b jsonschema.Regexp) int {
		return strings.Compare(a.String(), b.String())
	})
	for _, p := range patterns {
		if p.MatchString(name) {
			return n.sub(n.from.PatternProperties[p])
		}
	}
	other, left := restOf(n, n.from.AdditionalProperties), n.sub(n.from.UnevaluatedProperties)
	if other.closed || wide(left) || left.shape == nothing {
		left = nil
	}
	return cmp.Or(other.schema, left)
}
