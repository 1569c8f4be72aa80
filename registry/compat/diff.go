package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/avro"
)

// Kind is what happened to a place of a schema.
type Kind string

// The kinds of changes.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Change is a difference between two schemas that somebody who reads or writes
// by them may care about.
type Change struct {
	Path   string `json:"path"` // of the field, with dots; "" for the record itself
	Kind   Kind   `json:"kind"`
	Detail string `json:"detail"`
}

// Diff lists what changed from one schema to another, in the order of the
// newer one's fields.
func Diff(from, to *avro.Schema) []Change {
	d := &differ{old: named(from), new: named(to), seen: map[[2]string]bool{}}
	d.node("", from.Root(), to.Root())
	return d.changes
}

// Verdict says whether programs at one version read what others wrote.
type Verdict struct {
	NewReadsOld error // nil if readers of the newer one read data of the older one
	OldReadsNew error
}

// Readers tells who can read whom.
func Readers(from, to *avro.Schema) Verdict {
	v := Verdict{}
	for _, r := range Check(Full, to, []Version{{Schema: from}}) {
		if r.Backward {
			v.NewReadsOld = r.Obstacle
		} else {
			v.OldReadsNew = r.Obstacle
		}
	}
	return v
}

type differ struct {
	old, new map[string]*avro.SchemaNode // definitions by full name
	seen     map[[2]string]bool          // pairs of definitions under way or done: schemas may be recursive
	changes  []Change
}

func (d *differ) add(path string, kind Kind, format string, args ...any) {
	d.changes = append(d.changes, Change{strings.TrimPrefix(path, "."), kind, fmt.Sprintf(format, args...)})
}

// node compares two types, definitions where names stand for them.
func (d *differ) node(path string, a, b *avro.SchemaNode) {
	a, b = resolve(d.old, a), resolve(d.new, b)
	if describe(d.old, a) != describe(d.new, b) {
		d.add(path, Changed, "%s is now %s", describe(d.old, a), describe(d.new, b))
	}
	a, b = essence(d.old, a), essence(d.new, b)
	if a.Type != b.Type {
		return // told above
	}
	switch a.Type {
	case "record", "error":
		if pair := [2]string{fullName(a), fullName(b)}; !d.seen[pair] {
			d.seen[pair] = true
			d.record(path, a, b)
		}
	case "enum":
		if pair := [2]string{fullName(a), fullName(b)}; !d.seen[pair] {
			d.seen[pair] = true
			d.enum(path, a, b)
		}
	case "array":
		d.node(path+"[]", a.Items, b.Items)
	case "map":
		d.node(path+"{}", a.Values, b.Values)
	}
}

func (d *differ) record(path string, a, b *avro.SchemaNode) {
	kept := map[string]bool{}
	for i := range b.Fields {
		f := &b.Fields[i]
		at := path + "." + f.Name
		was := find(a.Fields, f)
		if was == nil {
			d.add(at, Added, "%s, %s", describe(d.new, resolve(d.new, &f.Type)), defaultOf(f))
			continue
		}
		kept[was.Name] = true
		if was.Name != f.Name {
			d.add(at, Changed, "was called %s", was.Name)
		}
		d.node(at, &was.Type, &f.Type)
		if before, now := defaultOf(was), defaultOf(f); before != now {
			d.add(at, Changed, "%s, before: %s", now, before)
		}
	}
	for i := range a.Fields {
		if f := &a.Fields[i]; !kept[f.Name] {
			d.add(path+"."+f.Name, Removed, "%s, %s", describe(d.old, resolve(d.old, &f.Type)), defaultOf(f))
		}
	}
}

// find is the field of fields that f continues: by its name, or by an alias.
func find(fields []avro.SchemaField, f *avro.SchemaField) *avro.SchemaField {
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		if i := slices.IndexFunc(fields, func(o avro.SchemaField) bool { return o.Name == name }); i >= 0 {
			return &fields[i]
		}
	}
	return nil
}

func defaultOf(f *avro.SchemaField) string {
	switch {
	case !f.HasDefault:
		return "no default"
	case f.Default == nil:
		return "default null"
	}
	return fmt.Sprintf("default %v", f.Default)
}

func (d *differ) enum(path string, a, b *avro.SchemaNode) {
	for _, s := range b.Symbols {
		if !slices.Contains(a.Symbols, s) {
			d.add(path, Added, "symbol %s", s)
		}
	}
	for _, s := range a.Symbols {
		if !slices.Contains(b.Symbols, s) {
			d.add(path, Removed, "symbol %s", s)
		}
	}
	if a.EnumDefault != b.EnumDefault || a.HasEnumDefault != b.HasEnumDefault {
		d.add(path, Changed, "symbol for unknown ones: %s, before: %s", orNone(b.EnumDefault), orNone(a.EnumDefault))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// named are a schema's definitions by full name, and by the last part of it,
// which is how names within a namespace may stand for them.
func named(s *avro.Schema) map[string]*avro.SchemaNode {
	out := map[string]*avro.SchemaNode{}
	var walk func(n *avro.SchemaNode)
	walk = func(n *avro.SchemaNode) {
		if n == nil {
			return
		}
		if n.Name != "" && slices.Contains([]string{"record", "error", "enum", "fixed"}, n.Type) {
			full := fullName(n)
			out[full] = n
			if short := full[strings.LastIndexByte(full, '.')+1:]; out[short] == nil {
				out[short] = n
			}
		}
		for i := range n.Fields {
			walk(&n.Fields[i].Type)
		}
		for i := range n.Branches {
			walk(&n.Branches[i])
		}
		walk(n.Items)
		walk(n.Values)
	}
	walk(s.Root())
	return out
}

func fullName(n *avro.SchemaNode) string {
	if n.Namespace == "" || strings.Contains(n.Name, ".") {
		return n.Name
	}
	return n.Namespace + "." + n.Name
}

// resolve is the definition that a name stands for.
func resolve(defs map[string]*avro.SchemaNode, n *avro.SchemaNode) *avro.SchemaNode {
	if def, ok := defs[n.Type]; ok {
		return def
	}
	return n
}

// essence is T of a union of null and T, and else the type itself.
func essence(defs map[string]*avro.SchemaNode, n *avro.SchemaNode) *avro.SchemaNode {
	if n.Type != "union" || len(n.Branches) != 2 {
		return n
	}
	for i := range n.Branches {
		if n.Branches[i].Type == "null" {
			return resolve(defs, &n.Branches[1-i])
		}
	}
	return n
}

// describe is a type in a few words; of a definition its name, whose parts are
// compared apart.
func describe(defs map[string]*avro.SchemaNode, n *avro.SchemaNode) string {
	n = resolve(defs, n)
	switch n.Type {
	case "record", "error", "enum":
		return n.Type + " " + fullName(n)
	case "fixed":
		return logical(n, fmt.Sprintf("fixed %s of %d bytes", fullName(n), n.Size))
	case "array":
		return "array of " + describe(defs, n.Items)
	case "map":
		return "map of " + describe(defs, n.Values)
	case "union":
		parts := make([]string, len(n.Branches))
		for i := range n.Branches {
			parts[i] = describe(defs, &n.Branches[i])
		}
		return strings.Join(parts, " or ")
	}
	return logical(n, n.Type)
}

func logical(n *avro.SchemaNode, text string) string {
	switch n.LogicalType {
	case "":
		return text
	case "decimal":
		return fmt.Sprintf("%s as decimal(%d,%d)", text, n.Precision, n.Scale)
	}
	return text + " as " + n.LogicalType
}
