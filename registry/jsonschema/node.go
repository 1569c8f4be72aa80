package jsonschema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// shape is what the keywords of a schema speak of. A schema that speaks of
// several, of a type and of an enum for one, is a combination of parts that all
// hold; so Confluent's registry sees it, and the rules are about shapes.
type shape string

const (
	anything    shape = "anything"
	nothing     shape = "nothing"
	text        shape = "string"
	number      shape = "number"
	boolean     shape = "boolean"
	null        shape = "null"
	array       shape = "array"
	properties  shape = "object"
	choice      shape = "enum"
	constant    shape = "const"
	negation    shape = "not"
	conditional shape = "if"
	combined    shape = "combined"
)

// criterion is how the parts of a combination go together.
type criterion string

const (
	allOf criterion = "allOf"
	anyOf criterion = "anyOf"
	oneOf criterion = "oneOf"
)

// node is a schema of one shape.
type node struct {
	shape     shape
	from      *jsonschema.Schema // holds the keywords
	forge     *forge
	integer   bool // of a number: no fractions
	criterion criterion
	parts     []part
	bytes     bool // Kafka Connect's mark of bytes, which it has written as two types
}

// part is a node of a combination. Parts of one key are one.
type part struct {
	*node
	key string
}

// forge makes the nodes of a schema as they are looked at, once each: to be
// followed round a circle of references, a place must stay the same node.
type forge struct{ made map[*jsonschema.Schema]*node }

func newForge() *forge { return &forge{map[*jsonschema.Schema]*node{}} }

// node is the node of a schema, nil for none.
func (f *forge) node(s *jsonschema.Schema) *node {
	if s == nil {
		return nil
	}
	s = target(s)
	if n := f.made[s]; n != nil {
		return n
	}
	n := &node{from: s, forge: f}
	f.made[s] = n
	switch parts := f.parts(s); {
	case len(parts) == 1:
		*n = *parts[0].node
	case len(parts) > 1:
		n.shape, n.criterion, n.parts = combined, allOf, parts
	case s.Bool != nil && !*s.Bool:
		n.shape = nothing
	default:
		n.shape = anything
	}
	n.bytes = rawOf(s)["connect.type"] == "bytes"
	return n
}

// target follows references that stand alone. Those in a circle mean nothing.
func target(s *jsonschema.Schema) *jsonschema.Schema {
	seen := map[*jsonschema.Schema]bool{}
	for !seen[s] {
		seen[s] = true
		if refs := references(s); len(refs) == 1 && !speaks(s) {
			s = refs[0]
			continue
		}
		return s
	}
	return &jsonschema.Schema{}
}

func references(s *jsonschema.Schema) []*jsonschema.Schema {
	refs := []*jsonschema.Schema{s.Ref, s.RecursiveRef}
	if s.DynamicRef != nil {
		refs = append(refs, s.DynamicRef.Ref)
	}
	return slices.DeleteFunc(refs, func(r *jsonschema.Schema) bool { return r == nil })
}

func (f *forge) parts(s *jsonschema.Schema) []part {
	var out []part
	add := func(n *node, key string) { out = append(out, part{n, key}) }
	for _, r := range references(s) {
		add(f.node(r), "$ref "+r.Location)
	}
	if s.Enum != nil {
		add(f.shaped(s, choice), string(choice))
	}
	for _, c := range []struct {
		criterion
		of []*jsonschema.Schema
	}{{allOf, s.AllOf}, {anyOf, s.AnyOf}, {oneOf, s.OneOf}} {
		if c.of != nil {
			n := f.shaped(s, combined)
			n.criterion, n.parts = c.criterion, f.branches(s, c.criterion, c.of)
			add(n, string(c.criterion))
		}
	}
	if s.Not != nil {
		add(f.shaped(s, negation), string(negation))
	}
	if s.Const != nil {
		add(f.shaped(s, constant), string(constant))
	}
	if typed := f.typed(s); typed != nil {
		add(typed, "type")
	}
	for _, sh := range untyped(s) {
		add(f.shaped(s, sh), string(sh))
	}
	if s.If != nil {
		add(f.shaped(s, conditional), string(conditional))
	}
	return out
}

func (f *forge) shaped(s *jsonschema.Schema, sh shape) *node {
	return &node{shape: sh, from: s, forge: f}
}

// branches are the schemas of an allOf, anyOf or oneOf. Their keys are what
// they say, letter by letter.
func (f *forge) branches(s *jsonschema.Schema, c criterion, of []*jsonschema.Schema) []part {
	texts, _ := rawOf(s)[string(c)].([]any)
	out := make([]part, len(of))
	for i, b := range of {
		key := b.Location
		if i < len(texts) {
			key = valueKey(texts[i])
		}
		out[i] = part{f.node(b), key}
	}
	return out
}

// typed is what a schema's type says, with the keywords of that type; several
// types are a combination.
func (f *forge) typed(s *jsonschema.Schema) *node {
	if s.Types == nil {
		return nil
	}
	var out []part
	for _, name := range s.Types.ToStrings() {
		n := f.shaped(s, shape(name))
		if name == "integer" {
			n.shape, n.integer = number, true
		}
		out = append(out, part{n, name})
	}
	if len(out) == 1 {
		return out[0].node
	}
	n := f.shaped(s, combined)
	n.criterion, n.parts = anyOf, out
	return n
}
