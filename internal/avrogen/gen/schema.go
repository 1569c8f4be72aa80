package gen

import "strings"

// fullName is the name of a definition with its namespace, and the namespace
// that names inside it belong to.
func fullName(n *node, enclosing string) (name, space string) {
	name = n.str("name")
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name, name[:i]
	}
	space = enclosing
	if own, ok := n.get("namespace").text(); ok {
		space = own
	}
	return qualify(name, space), space
}

// qualify is the full name that a reference stands for.
func qualify(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

// inner are the schemas directly inside a schema.
func inner(n *node) []*node {
	switch {
	case n == nil || n.kind == scalar:
		return nil
	case n.kind == array:
		return n.items
	}
	var out []*node
	for _, f := range itemsOf(n.get("fields")) {
		if t := f.get("type"); t != nil {
			out = append(out, t)
		}
	}
	for _, name := range []string{"type", "items", "values"} {
		if t := n.get(name); t != nil {
			out = append(out, t)
		}
	}
	return out
}

// walk visits every definition in a schema, outermost first.
func walk(n *node, space string, visit func(n *node, space string) error) error {
	if n.defines() {
		if err := visit(n, space); err != nil {
			return err
		}
		_, space = fullName(n, space)
	}
	for _, in := range inner(n) {
		if err := walk(in, space, visit); err != nil {
			return err
		}
	}
	return nil
}

// expander makes a schema stand alone: each type is spelled out where it is
// first used, whichever file defines it.
type expander struct {
	types map[string]*named
	done  map[string]bool
}

// expand is n within namespace space, without the attributes that are ours.
func (x *expander) expand(n *node, space string) *node {
	switch {
	case n == nil:
		return nil
	case n.kind == scalar:
		return x.reference(n, space)
	case n.kind == array:
		return &node{kind: array, items: x.each(n.items, space)}
	}
	if n.defines() {
		var name string
		if name, space = fullName(n, space); x.done[name] {
			return stringNode(name)
		}
		x.done[name] = true
	}
	return x.object(n, space)
}

func (x *expander) each(in []*node, space string) []*node {
	out := make([]*node, len(in))
	for i, n := range in {
		out[i] = x.expand(n, space)
	}
	return out
}

func (x *expander) object(n *node, space string) *node {
	out := &node{kind: object}
	for _, m := range n.members {
		switch {
		case n.defines() && isAttribute(m.name):
			continue
		case m.name == "fields":
			m.value = &node{kind: array, items: x.fields(m.value.items, space)}
		case m.name == "type" && !n.defines(), m.name == "items", m.name == "values":
			m.value = x.expand(m.value, space)
		}
		out.members = append(out.members, m)
	}
	return out
}

func (x *expander) fields(in []*node, space string) []*node {
	out := make([]*node, len(in))
	for i, f := range in {
		out[i] = &node{kind: object}
		for _, m := range f.members {
			if m.name == "type" {
				m.value = x.expand(m.value, space)
			}
			out[i].members = append(out[i].members, m)
		}
	}
	return out
}

// reference puts the definition in the place of the first use.
func (x *expander) reference(n *node, space string) *node {
	name, _ := n.text()
	t, ok := x.types[qualify(name, space)]
	if !ok || x.done[t.full] {
		return n
	}
	def := x.expand(t.node, t.space)
	if t.space == space || def.get("namespace") != nil {
		return def
	}
	// The definition took its namespace from the record around it.
	for i, m := range def.members {
		if m.name == "name" {
			def.members = append(def.members[:i+1:i+1],
				append([]member{{"namespace", stringNode(t.space)}}, def.members[i+1:]...)...)
			break
		}
	}
	return def
}
