package protobuf

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/parser"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Canonical writes a schema as Confluent's registry keeps it: without comments
// and white space of its own, a message's parts in one order. A descriptor in
// base64 becomes a text. Types, options and the order of messages are left as
// they are, so texts that say the same by other names stay apart.
func Canonical(text string) (string, error) { return canonical(text, false) }

// WithoutExtensions is the canonical text without extensions and without
// options of people's own, which Confluent calls the format ignore_extensions.
func WithoutExtensions(text string) (string, error) { return canonical(text, true) }

func canonical(text string, bare bool) (string, error) {
	out, err := understand(text)
	if err != nil {
		return "", err
	}
	syntax := out.AST().Syntax
	return write(out.FileDescriptorProto(), style{
		bare: bare, value: out.OptionNode, proto2: syntax != nil && syntax.Syntax.AsString() == "proto2",
	}), nil
}

// understand parses a text, or a descriptor in base64 where it is no text.
func understand(text string) (parser.Result, error) {
	out, err := parse(text)
	if err == nil {
		return out, nil
	}
	if file, ok := binary(text); ok {
		return parse(write(file, style{written: true}))
	}
	return nil, err
}

// binary reads a file's descriptor in base64. Options that it cannot know, for
// lack of the file that defines them, are lost, as they are with Confluent.
func binary(text string) (*descriptorpb.FileDescriptorProto, bool) {
	if len(text) > sizeLimit {
		return nil, false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, false
	}
	meta, err := confluentOptions()
	if err != nil {
		return nil, false
	}
	file := &descriptorpb.FileDescriptorProto{}
	if (proto.UnmarshalOptions{Resolver: meta, RecursionLimit: bracketLimit}).Unmarshal(raw, file) != nil {
		return nil, false
	}
	says := len(file.MessageType) + len(file.EnumType) + len(file.Service) + len(file.Extension) + len(file.Dependency)
	return file, says > 0 || strings.HasPrefix(file.GetSyntax(), "proto") || file.GetSyntax() == "editions"
}

func confluentOptions() (linker.Resolver, error) {
	var im Imports
	meta, err := im.Compile("syntax = \"proto3\";\nimport public \"confluent/meta.proto\";\n", false)
	if err != nil {
		return nil, errors.New("confluent/meta.proto cannot be read")
	}
	return meta.types, nil
}
