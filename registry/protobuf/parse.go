package protobuf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/types/descriptorpb"
)

// rootName is the name of the schema itself, as Confluent has it: registries
// know schemas by subject and version, and only imports by name.
const rootName = "default"

// parse reads a text. The result is not linked: types are called what the text
// calls them, and options mean nothing yet.
func parse(text string) (parser.Result, error) {
	if err := bounded(text); err != nil {
		return nil, err
	}
	var first error
	h := reporter.NewHandler(reporter.NewReporter(func(err reporter.ErrorWithPos) error {
		if isEntryError(err) {
			return nil
		}
		if first == nil {
			first = at(err)
		}
		return err
	}, nil))
	tree, err := parser.Parse(rootName, strings.NewReader(text), h)
	if first == nil && err == nil {
		var out parser.Result
		out, err = parser.ResultFromAST(tree, true, h)
		if first == nil && (err == nil || errors.Is(err, reporter.ErrInvalidSource)) {
			err = nil
			if len(out.FileDescriptorProto().Dependency) > fileLimit {
				err = fmt.Errorf("it imports more than %d files", fileLimit)
			}
			return out, err
		}
	}
	if first != nil {
		err = first
	}
	return nil, err
}

// isEntryError is the refusal of a map's entry that is written as a message,
// which the language forbids and Confluent's clients for Java send. The words
// are all the library tells.
func isEntryError(err error) bool {
	return strings.Contains(err.Error(), "map_entry option should not be set explicitly")
}

// at says where an error is in terms of the text.
func at(err reporter.ErrorWithPos) error {
	pos := err.GetPosition()
	if pos.Line == 0 {
		return err.Unwrap()
	}
	return fmt.Errorf("line %d, column %d: %w", pos.Line, pos.Col, err.Unwrap())
}

// entries makes what is written as a map's entry one, and puts the messages of
// a message into the order that clients count them in: those that are written
// as messages first, then those that fields bring along. A serializer names the
// type of a value by such numbers.
func entries(all []*descriptorpb.DescriptorProto) error {
	for _, m := range all {
		slices.SortStableFunc(m.NestedType, func(a, b *descriptorpb.DescriptorProto) int {
			return rank(m, a) - rank(m, b)
		})
		if err := entry(m); err != nil {
			return err
		}
		if err := entries(m.NestedType); err != nil {
			return err
		}
	}
	return nil
}

func rank(parent, m *descriptorpb.DescriptorProto) int {
	switch {
	case m.GetOptions().GetMapEntry():
		return 2
	case isGroup(parent, m):
		return 1
	}
	return 0
}

func isGroup(parent, m *descriptorpb.DescriptorProto) bool {
	return slices.ContainsFunc(parent.Field, func(f *descriptorpb.FieldDescriptorProto) bool {
		return f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_GROUP && short(f.GetTypeName()) == m.GetName()
	})
}

// entry turns a message into a map's entry if it says that it is one.
func entry(m *descriptorpb.DescriptorProto) error {
	written := m.GetOptions().GetUninterpretedOption()
	i := slices.IndexFunc(written, isEntryOption)
	if i < 0 {
		return nil
	}
	m.Options.UninterpretedOption = slices.Delete(slices.Clone(written), i, i+1)
	if written[i].GetIdentifierValue() != "true" {
		return nil
	}
	if len(m.Field) != 2 || !isPart(m.Field[0], "key", 1) || !isPart(m.Field[1], "value", 2) || !isKey(m.Field[0]) ||
		len(m.NestedType)+len(m.EnumType)+len(m.OneofDecl)+len(m.Extension)+len(m.ExtensionRange) > 0 {
		return fmt.Errorf("message %s: an entry of a map has the fields key = 1, a text or a whole number, and value = 2, and nothing else", m.GetName())
	}
	yes := true
	m.Options.MapEntry = &yes
	return nil
}

// isKey is whether a map may have keys of a field's type.
func isKey(f *descriptorpb.FieldDescriptorProto) bool {
	switch f.GetType() {
	case 0, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, descriptorpb.FieldDescriptorProto_TYPE_FLOAT,
		descriptorpb.FieldDescriptorProto_TYPE_BYTES, descriptorpb.FieldDescriptorProto_TYPE_GROUP:
		return false
	default:
		return f.GetTypeName() == ""
	}
}

func isEntryOption(o *descriptorpb.UninterpretedOption) bool {
	return len(o.Name) == 1 && !o.Name[0].GetIsExtension() && o.Name[0].GetNamePart() == "map_entry"
}

func isPart(f *descriptorpb.FieldDescriptorProto, name string, number int32) bool {
	return f.GetName() == name && f.GetNumber() == number && f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
}
