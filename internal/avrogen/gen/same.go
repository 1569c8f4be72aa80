package gen

import (
	"fmt"
	"strings"
)

// sameDefinition lets two files repeat a type as long as they agree: each
// schema is registered whole.
func sameDefinition(a, b *named) error {
	if a.source == b.source {
		return fmt.Errorf("%s is defined twice", a.full)
	}
	if signature(a.node, "", true) != signature(b.node, "", true) {
		return fmt.Errorf("%s is defined differently in %s", a.full, a.source.name)
	}
	if a.node == a.source.root && b.node == b.source.root {
		return fmt.Errorf("%s is what %s defines already", a.full, a.source.name)
	}
	return nil
}

// signature is what makes two definitions the same. Types defined inside have
// signatures of their own, so that it does not matter which file spells them
// out.
func signature(n *node, space string, top bool) string {
	if n.defines() {
		name, inner := fullName(n, space)
		if !top {
			return name
		}
		space = inner
	}
	parts := make([]string, 0, len(n.members)+len(n.items))
	for _, m := range n.members {
		if top && (m.name == "name" || m.name == "namespace") {
			continue // compared already, however it was written
		}
		parts = append(parts, m.name+"="+signature(m.value, space, false))
	}
	for _, item := range n.items {
		parts = append(parts, signature(item, space, false))
	}
	return fmt.Sprintf("%d%s{%s}", n.kind, n.scalar, strings.Join(parts, ","))
}
