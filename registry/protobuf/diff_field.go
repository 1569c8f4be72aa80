package protobuf

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

func (d *diff) field(w, r protoreflect.FieldDescriptor) {
	if r.Cardinality() == protoreflect.Required && label(w) != required && !d.numeric(w, r) {
		d.add(MadeRequired, string(r.FullName()), label(w), required)
	}
	d.types(w, r, w, r)
	if d.numeric(w, r) {
		d.labels(w, r)
	}
}

// types compares the types of two fields, or of the keys or values of theirs.
func (d *diff) types(w, r, atW, atR protoreflect.FieldDescriptor) {
	place := string(atR.FullName())
	if shape(w) != shape(r) {
		d.add(KindChanged, place, typeOf(w), typeOf(r))
		return
	}
	switch shape(w) {
	case "map":
		d.types(w.MapKey(), r.MapKey(), atW, atR)
		d.types(w.MapValue(), r.MapValue(), atW, atR)
	case "scalar":
		if wire(w.Kind()) != wire(r.Kind()) {
			d.add(ScalarKindChanged, place, typeOf(w), typeOf(r))
		}
	default:
		d.named(w.Message(), r.Message(), place)
	}
}

// named compares messages that fields have as their type. Those of the schema
// itself are compared where they stand; those imported only here, since nobody
// else looks at them, and may have come by another file or package.
func (d *diff) named(w, r protoreflect.MessageDescriptor, place string) {
	if localName(w) != localName(r) {
		d.add(NamedTypeChanged, place, string(w.FullName()), string(r.FullName()))
		return
	}
	if w.ParentFile() != d.roots[0] || r.ParentFile() != d.roots[1] || isGroupBody(w) || isGroupBody(r) {
		d.message(pair{w, r})
	}
}

// localName is a name without the package.
func localName(m protoreflect.MessageDescriptor) string {
	return strings.TrimPrefix(string(m.FullName()), string(m.ParentFile().Package())+".")
}

// shape is what of a field's type other types cannot stand in for.
func shape(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map"
	case f.Kind() == protoreflect.GroupKind:
		return "group"
	case f.Kind() == protoreflect.MessageKind:
		return "message"
	}
	return "scalar"
}

// wire groups simple types as Protobuf's rules of updating do: those of a group
// read each other, as far as values fit. Any enum is one of the plain numbers.
func wire(k protoreflect.Kind) string {
	switch k {
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return "signed number"
	case protoreflect.StringKind, protoreflect.BytesKind:
		return "string or bytes"
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return "fixed32"
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return "fixed64"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return k.String()
	default:
		return "number"
	}
}

// numeric is whether two fields are numbers of one group.
func (d *diff) numeric(w, r protoreflect.FieldDescriptor) bool {
	return shape(w) == "scalar" && shape(r) == "scalar" && wire(w.Kind()) == wire(r.Kind()) && wire(w.Kind()) != "string or bytes"
}

const required = "required"

// label is what a text has before a type; a field of proto3 without it, and a
// member of a oneof, has none.
func label(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsList():
		return "repeated"
	case f.Cardinality() == protoreflect.Required:
		return required
	case f.HasOptionalKeyword():
		return "optional"
	}
	return ""
}

// labels compares those of two numbers. Confluent compares labels that are
// written, whichever they are; where one is not, we look whether data is lost.
func (d *diff) labels(w, r protoreflect.FieldDescriptor) {
	from, to := label(w), label(r)
	switch {
	case from == to:
	case from != "" && to != "":
		d.add(LabelChanged, string(r.FullName()), from, to)
	case to == required:
		d.add(MadeRequired, string(r.FullName()), from, to)
	case from == "repeated":
		d.add(ValuesLost, string(r.FullName()), from, to)
	}
}

// typeOf is a field's type as a text has it.
func typeOf(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s, %s>", typeOf(f.MapKey()), typeOf(f.MapValue()))
	case f.Message() != nil:
		return string(f.Message().FullName())
	case f.Enum() != nil:
		return string(f.Enum().FullName())
	}
	return f.Kind().String()
}
