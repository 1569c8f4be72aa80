package compat

import "github.com/twmb/avro"

// Strict is s as a reader without mercy: the library takes a field of type
// ["null", T] without a default for one that defaults to null, but readers in
// other languages fail on it. With null moved to the end no default is
// implied, and nothing else about the field changes.
//
// Where that does not give a schema (an enclosing default counts on the
// implied one) s itself must do.
func Strict(s *avro.Schema) *avro.Schema {
	root := s.Root()
	if !demote(root) {
		return s
	}
	if out, err := root.Schema(); err == nil {
		return out
	}
	return s
}

// demote moves null to the end wherever a default would be implied, and says
// whether it had to.
func demote(n *avro.SchemaNode) (changed bool) {
	for i := range n.Fields {
		f := &n.Fields[i]
		if b := f.Type.Branches; !f.HasDefault && len(b) > 1 && b[0].Type == "null" {
			f.Type.Branches = append(append([]avro.SchemaNode{}, b[1:]...), b[0])
			changed = true
		}
		changed = demote(&f.Type) || changed
	}
	for i := range n.Branches {
		changed = demote(&n.Branches[i]) || changed
	}
	if n.Items != nil {
		changed = demote(n.Items) || changed
	}
	if n.Values != nil {
		changed = demote(n.Values) || changed
	}
	return changed
}
