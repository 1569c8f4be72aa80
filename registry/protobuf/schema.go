package protobuf

import (
	"encoding/base64"
	"strings"

	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Schema is a schema that was understood, with what it imports.
type Schema struct {
	file  linker.Result
	types linker.Resolver
}

// Normal writes the schema anew: texts that say the same become one. Types
// have their full names; fields, values of enums and options are in order.
// Messages stay in theirs, by which serializers name them.
func (s *Schema) Normal() string {
	return write(s.descriptor(), style{normal: true})
}

// Serialized is the FileDescriptorProto in base64, which clients without a
// parser of texts ask for. Its name is "default".
func (s *Schema) Serialized() (string, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.descriptor())
	return base64.StdEncoding.EncodeToString(raw), err
}

// Order are the messages in the order in which serializers count them, entries
// of maps among them. Texts that are alike in all else mean other types by one
// number where their orders differ.
func (s *Schema) Order() string {
	var b strings.Builder
	var add func(protoreflect.MessageDescriptors)
	add = func(all protoreflect.MessageDescriptors) {
		for i := range all.Len() {
			b.WriteString(string(all.Get(i).Name()) + "(")
			add(all.Get(i).Messages())
			b.WriteByte(')')
		}
	}
	add(s.file.Messages())
	return b.String()
}

// descriptor is the schema with its options as what they mean, those of
// people's own too, as far as their definitions are known.
func (s *Schema) descriptor() *descriptorpb.FileDescriptorProto {
	linked := s.file.FileDescriptorProto()
	raw, err := proto.Marshal(linked)
	known := &descriptorpb.FileDescriptorProto{}
	if err != nil || (proto.UnmarshalOptions{Resolver: s.types}).Unmarshal(raw, known) != nil {
		return linked
	}
	return known
}
