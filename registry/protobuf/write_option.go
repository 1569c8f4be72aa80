package protobuf

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// option is one as it is written, its value perhaps on several lines.
type option struct{ name, value string }

func (o option) String() string { return o.name + " = " + o.value }

// isCustom is whether people made the option themselves. Confluent's own is
// not: its clients act on it.
func (o option) isCustom() bool {
	return strings.HasPrefix(o.name, "(") && !strings.HasPrefix(o.name, "(confluent.")
}

// list writes options in brackets.
func list(all []option) string {
	switch len(all) {
	case 0:
		return ""
	case 1:
		return " [" + all[0].String() + "]"
	}
	items := make([]string, len(all))
	for i, o := range all {
		items[i] = o.String()
	}
	return " " + enclose("[", items, "]")
}

// enclose writes items one to a line.
func enclose(begin string, items []string, end string) string {
	var b strings.Builder
	b.WriteString(begin + "\n")
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		for l := range strings.Lines(item) {
			b.WriteString("  " + l)
		}
		b.WriteByte('\n')
	}
	return b.String() + end
}

// options are those of an element: as a text has them, or by what they mean.
func (w *writer) options(m proto.Message) []option {
	var all []option
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(f.Name())
		if f.IsExtension() {
			name = "(" + string(f.FullName()) + ")"
		}
		switch {
		case f.Name() == "uninterpreted_option":
			for i := range v.List().Len() {
				if o, ok := v.List().Get(i).Message().Interface().(*descriptorpb.UninterpretedOption); ok {
					all = append(all, w.uninterpreted(o))
				}
			}
		case f.Name() == "map_entry" && !w.written:
		case f.IsList():
			for i := range v.List().Len() {
				all = append(all, option{name, w.single(f, v.List().Get(i))})
			}
		case f.IsMap(): // each of its entries is an option
			for _, entry := range w.entries(f, v.Map()) {
				all = append(all, option{name, entry})
			}
		default:
			all = append(all, option{name, w.single(f, v)})
		}
		return true
	})
	if w.bare {
		all = slices.DeleteFunc(all, option.isCustom)
	}
	if w.value == nil { // what a text has stays in its order
		slices.SortStableFunc(all, func(a, b option) int { return strings.Compare(strings.Trim(a.name, "()"), strings.Trim(b.name, "()")) })
	}
	return all
}

// fieldOptions are those of a field, and what is written like one.
func (w *writer) fieldOptions(f *descriptorpb.FieldDescriptorProto) []option {
	all := w.options(f.GetOptions())
	if f.DefaultValue != nil {
		all = append(all, option{"default", defaultValue(f)})
	}
	if f.JsonName != nil && w.value == nil && f.GetJsonName() != jsonName(f.GetName()) {
		all = append(all, option{"json_name", quote(f.GetJsonName())})
	}
	last := func(o option) int { return slices.Index([]string{"default", "json_name"}, o.name) }
	slices.SortStableFunc(all, func(a, b option) int { return cmp.Compare(last(a), last(b)) })
	return all
}

func defaultValue(f *descriptorpb.FieldDescriptorProto) string {
	switch f.GetType() {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING:
		return quote(f.GetDefaultValue())
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES: // escaped as it is
		return `"` + f.GetDefaultValue() + `"`
	default:
		return f.GetDefaultValue()
	}
}

// jsonName is the name of a field in JSON where nothing else is said.
func jsonName(name string) string {
	var b strings.Builder
	upper := false
	for i := range len(name) {
		c := name[i]
		if c == '_' {
			upper = true
			continue
		}
		if upper && 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper = false
		b.WriteByte(c)
	}
	return b.String()
}

// uninterpreted writes an option as a text has it.
func (w *writer) uninterpreted(o *descriptorpb.UninterpretedOption) option {
	var names []string
	for _, part := range o.Name {
		name := part.GetNamePart()
		if part.GetIsExtension() {
			name = "(" + name + ")"
		}
		names = append(names, name)
	}
	out := option{name: strings.Join(names, ".")}
	if w.value != nil {
		if node, ok := w.value(o).(*ast.OptionNode); ok {
			out.value = literalText(node.Val)
		}
	}
	return out
}
