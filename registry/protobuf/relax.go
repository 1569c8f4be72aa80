package protobuf

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// relaxed is a file without imports that are not there and without options of
// people's own, and with imports that Confluent's registry does not ask for.
func (im *Imports) relaxed(in *descriptorpb.FileDescriptorProto) *descriptorpb.FileDescriptorProto {
	file := &descriptorpb.FileDescriptorProto{}
	proto.Merge(file, in)
	var there []string
	var public []int32
	for i, name := range file.Dependency {
		if _, ok := builtin(name); !ok && im.files[name] == nil {
			continue
		}
		if slices.Contains(file.PublicDependency, int32(i)) {
			public = append(public, int32(len(there)))
		}
		there = append(there, name)
	}
	for _, name := range unasked() {
		if !slices.Contains(there, name) {
			there = append(there, name)
		}
	}
	file.Dependency, file.PublicDependency, file.WeakDependency = there, public, nil
	dropCustom(file.ProtoReflect())
	return file
}

// unasked are files whose types Confluent knows without an import.
func unasked() []string {
	var out []string
	for _, name := range []string{"any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"} {
		out = append(out, "google/protobuf/"+name+".proto")
	}
	return out
}

// dropCustom leaves out options whose names stand in parentheses.
func dropCustom(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case !f.IsList():
			dropCustom(v.Message())
		case f.Name() == "uninterpreted_option":
			keepPlain(m.Mutable(f).List())
		default:
			for i := range v.List().Len() {
				dropCustom(v.List().Get(i).Message())
			}
		}
		return true
	})
}

func keepPlain(options protoreflect.List) {
	kept := 0
	for i := range options.Len() {
		o, ok := options.Get(i).Message().Interface().(*descriptorpb.UninterpretedOption)
		if ok && !o.Name[0].GetIsExtension() {
			options.Set(kept, options.Get(i))
			kept++
		}
	}
	options.Truncate(kept)
}
