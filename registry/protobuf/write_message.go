package protobuf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

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
