package protobuf

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bufbuild/protocompile/ast"
	"google.golang.org/protobuf/reflect/protoreflect"
)

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
			return "[\n]"
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
