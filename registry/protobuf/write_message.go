package protobuf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

const lastNumber = 536_870_911

func (w *writer) message(m *descriptorpb.DescriptorProto) { w.body("message "+m.GetName(), m) }

func (w *writer) body(head string, m *descriptorpb.DescriptorProto) {
	var own, united []*descriptorpb.FieldDescriptorProto
	for _, f := range sorted(w, m.Field, byNumber) {
		if f.OneofIndex != nil && !f.GetProto3Optional() {
			united = append(united, f)
		} else {
			own = append(own, f)
		}
	}
	w.block(
		head, "",
		func(begin func()) { w.reserved(messageRanges(m), m.ReservedName, begin) },
		func(begin func()) {
			if options := w.options(m.GetOptions()); len(options) > 0 {
				begin()
				w.optionLines(options)
			}
		},
		func(begin func()) {
			if len(own) > 0 {
				begin()
			}
			for _, f := range own {
				w.field(f, m.NestedType, false)
			}
		},
		func(begin func()) { w.oneofs(m, united, begin) },
		func(begin func()) { w.extensions(m.ExtensionRange, begin) },
		func(begin func()) { w.extend(m.Extension, m.NestedType, begin) },
		func(begin func()) { w.nested(m, begin) },
	)
}

func (w *writer) nested(m *descriptorpb.DescriptorProto, begin func()) {
	began := false
	first := func() {
		if !began {
			begin()
		}
		began = true
	}
	for _, n := range m.NestedType {
		if !isGroup(m, n) && !isExtensionGroup(m.Extension, n) && !w.folds(n) {
			first()
			w.message(n)
		}
	}
	for _, e := range m.EnumType {
		first()
		w.enum(e)
	}
}

func isExtensionGroup(extensions []*descriptorpb.FieldDescriptorProto, m *descriptorpb.DescriptorProto) bool {
	return isGroup(&descriptorpb.DescriptorProto{Field: extensions}, m)
}

// folds is whether a message is a map's entry that is written as a map.
func (w *writer) folds(m *descriptorpb.DescriptorProto) bool {
	return !w.written && m.GetOptions().GetMapEntry()
}

func (w *writer) oneofs(m *descriptorpb.DescriptorProto, united []*descriptorpb.FieldDescriptorProto, begin func()) {
	if len(united) == 0 {
		return
	}
	begin()
	of := make([][]*descriptorpb.FieldDescriptorProto, len(m.OneofDecl))
	var order []int
	for _, f := range united {
		i := int(f.GetOneofIndex())
		if i < 0 || i >= len(of) {
			continue
		}
		if of[i] == nil {
			order = append(order, i)
		}
		of[i] = append(of[i], f)
	}
	if !w.normal {
		slices.Sort(order) // as they were declared
	}
	for _, i := range order {
		w.block(
			"oneof "+m.OneofDecl[i].GetName(), "",
			func(begin func()) {
				if options := w.options(m.OneofDecl[i].GetOptions()); len(options) > 0 {
					begin()
					w.optionLines(options)
				}
			},
			func(begin func()) {
				begin()
				for _, f := range of[i] {
					w.field(f, m.NestedType, true)
				}
			},
		)
	}
}

// field writes a field; among are the messages that stand beside it.
func (w *writer) field(f *descriptorpb.FieldDescriptorProto, among []*descriptorpb.DescriptorProto, united bool) {
	label, typ := w.label(f, united), typeName(f)
	if i := slices.IndexFunc(among, func(m *descriptorpb.DescriptorProto) bool { return short(f.GetTypeName()) == m.GetName() }); i >= 0 {
		switch {
		case f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_GROUP:
			w.body(label+"group "+among[i].GetName()+" = "+strconv.Itoa(int(f.GetNumber())), among[i])
			return
		case w.folds(among[i]) && f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_REPEATED && len(among[i].Field) == 2:
			label, typ = "", fmt.Sprintf("map<%s, %s>", typeName(among[i].Field[0]), typeName(among[i].Field[1]))
		}
	}
	w.line(fmt.Sprintf("%s%s %s = %d%s;", label, typ, f.GetName(), f.GetNumber(), list(w.fieldOptions(f))))
}

func short(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func (w *writer) label(f *descriptorpb.FieldDescriptorProto, united bool) string {
	switch f.GetLabel() {
	case descriptorpb.FieldDescriptorProto_LABEL_REPEATED:
		return "repeated "
	case descriptorpb.FieldDescriptorProto_LABEL_REQUIRED:
		return "required "
	case descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL:
	}
	if f.GetProto3Optional() || !united && w.file.GetSyntax() != "proto3" && w.file.GetSyntax() != "editions" {
		return "optional "
	}
	return ""
}

func typeName(f *descriptorpb.FieldDescriptorProto) string {
	if f.GetTypeName() != "" {
		return f.GetTypeName()
	}
	return strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TYPE_"))
}

// span is a range of numbers, both ends in it.
type span struct {
	from, to, last int32
	options        *descriptorpb.ExtensionRangeOptions
}

func (s span) String() string {
	switch {
	case s.from == s.to:
		return strconv.Itoa(int(s.from))
	case s.to >= s.last:
		return fmt.Sprintf("%d to max", s.from)
	}
	return fmt.Sprintf("%d to %d", s.from, s.to)
}

func bySpan(a, b span) int { return cmp.Compare(a.from, b.from) }

func messageRanges(m *descriptorpb.DescriptorProto) []span {
	var out []span
	for _, r := range m.ReservedRange {
		out = append(out, span{r.GetStart(), r.GetEnd() - 1, lastNumber, nil})
	}
	return out
}

func (w *writer) reserved(spans []span, names []string, begin func()) {
	if len(spans)+len(names) > 0 {
		begin()
	}
	for _, s := range sorted(w, spans, bySpan) {
		w.line("reserved " + s.String() + ";")
	}
	for _, name := range sorted(w, names, strings.Compare) {
		if w.file.GetSyntax() != "editions" {
			name = quote(name)
		}
		w.line("reserved " + name + ";")
	}
}

func (w *writer) extensions(ranges []*descriptorpb.DescriptorProto_ExtensionRange, begin func()) {
	if w.bare || len(ranges) == 0 {
		return
	}
	begin()
	var spans []span
	for _, r := range ranges {
		spans = append(spans, span{r.GetStart(), r.GetEnd() - 1, lastNumber, r.GetOptions()})
	}
	for _, s := range sorted(w, spans, bySpan) {
		w.line("extensions " + s.String() + list(w.options(s.options)) + ";")
	}
}

func (w *writer) enum(e *descriptorpb.EnumDescriptorProto) {
	var spans []span
	for _, r := range e.ReservedRange {
		spans = append(spans, span{r.GetStart(), r.GetEnd(), math.MaxInt32, nil})
	}
	values := sorted(w, e.Value, func(a, b *descriptorpb.EnumValueDescriptorProto) int {
		// The first is what a field is that nothing was written to. Confluent
		// sorts it among the others, and then it may be another one.
		return cmp.Or(isFirst(e, b)-isFirst(e, a), cmp.Compare(a.GetNumber(), b.GetNumber()), strings.Compare(a.GetName(), b.GetName()))
	})
	reserved := len(spans)+len(e.ReservedName) > 0
	w.block(
		"enum "+e.GetName(), "",
		func(begin func()) { w.reserved(spans, e.ReservedName, begin) },
		func(begin func()) {
			options := w.options(e.GetOptions())
			if !reserved && len(options)+len(values) > 0 {
				begin()
			}
			w.optionLines(options)
			for _, v := range values {
				w.line(fmt.Sprintf("%s = %d%s;", v.GetName(), v.GetNumber(), list(w.options(v.GetOptions()))))
			}
		},
	)
}

func isFirst(e *descriptorpb.EnumDescriptorProto, v *descriptorpb.EnumValueDescriptorProto) int {
	if e.Value[0] == v {
		return 1
	}
	return 0
}

func (w *writer) service(s *descriptorpb.ServiceDescriptorProto) {
	w.block(
		"service "+s.GetName(), "",
		func(begin func()) {
			if options := w.options(s.GetOptions()); len(options) > 0 {
				begin()
				w.optionLines(options)
			}
		},
		func(begin func()) {
			if len(s.Method) > 0 {
				begin()
			}
			for _, m := range s.Method {
				w.method(m)
			}
		},
	)
}

func (w *writer) method(m *descriptorpb.MethodDescriptorProto) {
	stream := func(on bool, name string) string {
		if on {
			return "stream " + name
		}
		return name
	}
	head := fmt.Sprintf("rpc %s (%s) returns (%s)", m.GetName(),
		stream(m.GetClientStreaming(), m.GetInputType()), stream(m.GetServerStreaming(), m.GetOutputType()))
	options := w.options(m.GetOptions())
	if len(options) == 0 {
		w.line(head + ";")
		return
	}
	w.block(head, ";", func(begin func()) {
		begin()
		w.optionLines(options)
	})
}
