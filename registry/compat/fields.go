package compat

import (
	"strings"

	"github.com/twmb/avro"
)

// Field is a place of a schema in words, for people.
type Field struct {
	Path     string `json:"path"` // with dots; [] of an array's element, {} of a map's value
	Type     string `json:"type"`
	Default  string `json:"default,omitempty"` // "" if there is none: writers must give it
	Doc      string `json:"doc,omitempty"`
	Symbols  string `json:"symbols,omitempty"` // of an enum
	Optional bool   `json:"optional"`          // null is one of its types
}

// Fields lists the fields of a record and of the records within it, in their
// order. A record that contains itself is listed once.
func Fields(s *avro.Schema) []Field {
	l := lister{defs: named(s), under: map[string]bool{}}
	l.record("", s.Root())
	return l.out
}

type lister struct {
	defs  map[string]*avro.SchemaNode
	under map[string]bool // records that are being listed
	out   []Field
}

func (l *lister) record(path string, n *avro.SchemaNode) {
	name := fullName(n)
	if l.under[name] {
		return
	}
	l.under[name] = true
	defer delete(l.under, name)
	for i := range n.Fields {
		f := &n.Fields[i]
		at := path + f.Name
		out := Field{Path: at, Type: describe(l.defs, &f.Type), Doc: f.Doc}
		if f.HasDefault {
			out.Default = strings.TrimPrefix(defaultOf(f), "default ")
		}
		inner := essence(l.defs, resolve(l.defs, &f.Type))
		if f.Type.Type == "union" {
			for i := range f.Type.Branches {
				out.Optional = out.Optional || f.Type.Branches[i].Type == "null"
			}
		}
		if inner.Type == "enum" {
			out.Symbols = strings.Join(inner.Symbols, ", ")
		}
		l.out = append(l.out, out)
		l.within(at, inner)
	}
}

// within lists the records inside a type.
func (l *lister) within(path string, n *avro.SchemaNode) {
	n = essence(l.defs, resolve(l.defs, n))
	switch n.Type {
	case "record", "error":
		l.record(path+".", n)
	case "array":
		l.within(path+"[]", n.Items)
	case "map":
		l.within(path+"{}", n.Values)
	}
}
