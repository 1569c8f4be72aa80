package protobuf

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Kind is a difference that keeps one schema from reading another's data. The
// first are those of Confluent's SchemaDiff that are not among its compatible
// changes, by their names there; the last are ours.
type Kind string

// Differences. What is not among them is compatible: messages added and moved,
// fields added, removed and renamed, all about enums, a whole oneof added,
// removed or renamed, members added to one or taken out of it, and labels of
// strings, bytes and messages.
const (
	PackageChanged     Kind = "PACKAGE_CHANGED"
	MessageRemoved     Kind = "MESSAGE_REMOVED"
	KindChanged        Kind = "FIELD_KIND_CHANGED"
	ScalarKindChanged  Kind = "FIELD_SCALAR_KIND_CHANGED"
	NamedTypeChanged   Kind = "FIELD_NAMED_TYPE_CHANGED"
	LabelChanged       Kind = "FIELD_NUMERIC_LABEL_CHANGED"
	RequiredAdded      Kind = "REQUIRED_FIELD_ADDED"
	RequiredRemoved    Kind = "REQUIRED_FIELD_REMOVED"
	OneofMemberRemoved Kind = "ONEOF_FIELD_REMOVED"
	MovedIntoOneof     Kind = "FIELD_MOVED_TO_EXISTING_ONEOF"
	ManyMovedIntoOneof Kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"

	// MadeRequired: data without the field cannot be read any more. Confluent
	// looks at this where the field is a number with a label.
	MadeRequired Kind = "FIELD_MADE_REQUIRED"
	// ValuesLost: of a packed list, a reader of one number gets nothing.
	// Confluent looks at this where the number has a label.
	ValuesLost Kind = "REPEATED_FIELD_MADE_SINGLE"
)

// Difference is one, with the place and what the two schemas have there.
type Difference struct {
	Kind          Kind
	Place         string // full name of a message or field, "" for the file
	Written, Read string // a type, a package, a label; may be empty
}

// differenceLimit bounds what is told of two schemas.
const differenceLimit = 10

type pair struct {
	written, read protoreflect.MessageDescriptor
}

type diff struct {
	roots [2]protoreflect.FileDescriptor
	seen  map[pair]bool
	found []Difference
}

// differences are those that keep a schema from reading what another wrote.
func differences(written, read *Schema) []Difference {
	d := &diff{roots: [2]protoreflect.FileDescriptor{written.file, read.file}, seen: map[pair]bool{}}
	if w, r := written.file.Package(), read.file.Package(); w != r {
		d.add(PackageChanged, "", strconv.Quote(string(w)), strconv.Quote(string(r)))
	}
	d.messages(written.file.Messages(), read.file.Messages())
	return d.found
}

func (d *diff) add(kind Kind, place, written, read string) {
	if len(d.found) < differenceLimit {
		d.found = append(d.found, Difference{kind, place, written, read})
	}
}

func (d *diff) messages(written, read protoreflect.MessageDescriptors) {
	for i := range written.Len() {
		w := written.Get(i)
		if w.IsMapEntry() || isGroupBody(w) {
			continue // part of a field, and compared there
		}
		r := read.ByName(w.Name())
		if r == nil || r.IsMapEntry() {
			d.add(MessageRemoved, string(w.FullName()), "", "")
			continue
		}
		d.message(pair{w, r})
	}
}

// isGroupBody is whether a message is what a group of its name has in braces.
func isGroupBody(m protoreflect.MessageDescriptor) bool {
	parent, ok := m.Parent().(protoreflect.MessageDescriptor)
	if !ok {
		return false
	}
	f := parent.Fields().ByName(protoreflect.Name(strings.ToLower(string(m.Name()))))
	return f != nil && f.Kind() == protoreflect.GroupKind && f.Message() == m
}

// message compares two messages, once, however many fields lead to them.
func (d *diff) message(p pair) {
	if d.seen[p] {
		return
	}
	d.seen[p] = true
	d.oneofs(p)
	for i := range p.written.Fields().Len() {
		w := p.written.Fields().Get(i)
		r := p.read.Fields().ByNumber(w.Number())
		if r != nil {
			d.field(w, r)
			continue
		}
		switch {
		case oneofOf(w) != nil:
			if d.survives(oneofOf(w), p.read) {
				d.add(OneofMemberRemoved, string(w.FullName()), "", "")
			}
		case w.Cardinality() == protoreflect.Required:
			d.add(RequiredRemoved, string(w.FullName()), "", "")
		}
	}
	for i := range p.read.Fields().Len() {
		r := p.read.Fields().Get(i)
		if r.Cardinality() == protoreflect.Required && p.written.Fields().ByNumber(r.Number()) == nil {
			d.add(RequiredAdded, string(r.FullName()), "", "")
		}
	}
	d.messages(p.written.Messages(), p.read.Messages())
}

// oneofOf is the oneof that somebody wrote around a field.
func oneofOf(f protoreflect.FieldDescriptor) protoreflect.OneofDescriptor {
	if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
		return o
	}
	return nil
}

// survives is whether a reader still has the oneof, or one of its members:
// one that is gone as a whole takes nothing from its members.
func (d *diff) survives(o protoreflect.OneofDescriptor, read protoreflect.MessageDescriptor) bool {
	if there := read.Oneofs().ByName(o.Name()); there != nil && !there.IsSynthetic() {
		return true
	}
	for i := range o.Fields().Len() {
		if read.Fields().ByNumber(o.Fields().Get(i).Number()) != nil {
			return true
		}
	}
	return false
}

// oneofs finds fields that could stand together and cannot any more.
func (d *diff) oneofs(p pair) {
	for i := range p.read.Oneofs().Len() {
		o := p.read.Oneofs().Get(i)
		if o.IsSynthetic() {
			continue
		}
		from, single := map[protoreflect.FullName]bool{}, []string{}
		for j := range o.Fields().Len() {
			w := p.written.Fields().ByNumber(o.Fields().Get(j).Number())
			switch {
			case w == nil: // nothing was written there
			case oneofOf(w) != nil:
				from[oneofOf(w).FullName()] = true
			default:
				from[w.FullName()] = true
				single = append(single, string(w.Name()))
			}
		}
		switch {
		case len(from) < 2:
		case len(single) > 1:
			d.add(ManyMovedIntoOneof, string(o.FullName()), "", strings.Join(single[:min(len(single), differenceLimit)], ", "))
		default:
			d.add(MovedIntoOneof, string(o.FullName()), "", strings.Join(single, ", "))
		}
	}
}
