package protobuf

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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

// single writes a value of a field that is no list and no map.
func (w *writer) single(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch f.Kind() {
	case protoreflect.StringKind:
		return quote(v.String())
	case protoreflect.BytesKind:
		return quote(string(v.Bytes()))
	case protoreflect.EnumKind:
		if value := f.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
		return strconv.Itoa(int(v.Enum()))
	case protoreflect.FloatKind:
		return strconv.FormatFloat(v.Float(), 'g', -1, 32)
	case protoreflect.DoubleKind:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return w.literal(v.Message())
	default:
		return fmt.Sprint(v.Interface())
	}
}

func (w *writer) literal(m protoreflect.Message) string {
	type pair struct {
		field protoreflect.FieldDescriptor
		text  string
	}
	var all []pair
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := f.TextName()
		var items []string
		switch {
		case f.IsMap():
			items = w.entries(f, v.Map())
		case f.IsList():
			for i := range v.List().Len() {
				items = append(items, w.single(f, v.List().Get(i)))
			}
		default:
			all = append(all, pair{f, name + ": " + w.single(f, v)})
			return true
		}
		text := enclose("[", items, "]")
		if w.normal && len(items) == 1 {
			text = items[0]
		}
		all = append(all, pair{f, name + ": " + text})
		return true
	})
	slices.SortFunc(all, func(a, b pair) int {
		if w.normal {
			return strings.Compare(a.text, b.text)
		}
		return cmp.Compare(a.field.Number(), b.field.Number())
	})
	items := make([]string, len(all))
	for i, p := range all {
		items[i] = p.text
	}
	if len(items) == 0 {
		return "{\n}"
	}
	return enclose("{", items, "}")
}

// entries are those of a map, by their texts: maps have no order.
func (w *writer) entries(f protoreflect.FieldDescriptor, m protoreflect.Map) []string {
	var items []string
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		items = append(items, enclose("{", []string{
			"key: " + w.single(f.MapKey(), k.Value()),
			"value: " + w.single(f.MapValue(), v),
		}, "}"))
		return true
	})
	slices.Sort(items)
	return items
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

// literalText writes a value of a text: words and numbers as they are, strings
// in one piece, literals one part to a line.
func literalText(v ast.ValueNode) string {
	switch v := v.(type) {
	case *ast.MessageLiteralNode:
		var items []string
		for _, f := range v.Elements {
			items = append(items, fieldReference(f.Name)+": "+literalText(f.Val))
		}
		if len(items) == 0 {
			return "{\n}"
		}
		return enclose("{", items, "}")
	case *ast.ArrayLiteralNode:
		var items []string
		for _, e := range v.Elements {
			items = append(items, literalText(e))
		}
		if len(items) == 0 {
			return "[]"
		}
		return enclose("[", items, "]")
	case ast.StringValueNode:
		return quote(v.AsString())
	case ast.IdentValueNode:
		return string(v.AsIdentifier())
	case *ast.SpecialFloatLiteralNode:
		return v.KeywordNode.Val
	case *ast.SignedFloatLiteralNode:
		return sign(v.Sign) + literalText(v.Float)
	}
	switch n := v.Value().(type) {
	case float64:
		return strconv.FormatFloat(n, 'g', -1, 64)
	default:
		return fmt.Sprint(n)
	}
}

func sign(r *ast.RuneNode) string {
	if r != nil && r.Rune == '-' {
		return "-"
	}
	return ""
}

func fieldReference(f *ast.FieldReferenceNode) string {
	name := string(f.Name.AsIdentifier())
	switch {
	case f.IsAnyTypeReference():
		return "[" + string(f.URLPrefix.AsIdentifier()) + "/" + name + "]"
	case f.IsExtension():
		return "[" + name + "]"
	}
	return name
}

// quote writes a string as the language has it. Bytes that are no character
// would not survive being read.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, c := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		if j := strings.IndexRune("\a\b\f\n\r\t\v\\'\"", c); j >= 0 {
			b.WriteString(`\` + `abfnrtv\'"`[j:j+1])
		} else if c < ' ' || c == 0x7f || c == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\%03o`, s[i])
		} else {
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
