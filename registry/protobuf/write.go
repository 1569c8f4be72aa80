package protobuf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"google.golang.org/protobuf/types/descriptorpb"
)

// style is how a file is written. Indentation, empty lines and the order of
// parts are Confluent's, so that its canonical and normal texts and ours are
// the same but for rare things.
type style struct {
	normal  bool // in order, and each entry of a map as a map
	written bool // entries of maps as the messages they are
	bare    bool // without extensions
	proto2  bool // the text says that it is, which need not be said
	// value finds what a text says of an option, whose literals descriptors
	// keep as mere words.
	value func(*descriptorpb.UninterpretedOption) ast.OptionDeclNode
}

func write(file *descriptorpb.FileDescriptorProto, s style) string {
	w := &writer{style: s, file: file}
	w.header()
	if options := w.options(file.GetOptions()); len(options) > 0 {
		w.blank()
		w.optionLines(options)
	}
	if len(file.MessageType)+len(file.EnumType) > 0 {
		w.blank()
		for _, m := range file.MessageType {
			if !isExtensionGroup(file.Extension, m) {
				w.message(m)
			}
		}
		for _, e := range file.EnumType {
			w.enum(e)
		}
	}
	w.extend(file.Extension, file.MessageType, w.blank)
	if len(file.Service) > 0 {
		w.blank()
		for _, service := range file.Service {
			w.service(service)
		}
	}
	return w.out.String()
}

type writer struct {
	style
	file  *descriptorpb.FileDescriptorProto
	out   strings.Builder
	depth int
}

// line writes lines where the writer stands.
func (w *writer) line(text string) {
	for l := range strings.Lines(text) {
		w.out.WriteString(strings.Repeat("  ", w.depth) + strings.TrimSuffix(l, "\n") + "\n")
	}
}

func (w *writer) blank() { w.out.WriteString(strings.Repeat("  ", max(w.depth-1, 0)) + "\n") }

// block writes what stands in braces, its sections apart. Each section writes
// nothing, or calls the function it is given and then writes.
func (w *writer) block(head, tail string, sections ...func(begin func())) {
	indent := strings.Repeat("  ", w.depth)
	w.out.WriteString(indent + head + " {")
	w.depth++
	empty := true
	for _, section := range sections {
		section(func() {
			if empty {
				w.out.WriteByte('\n')
			} else {
				w.blank()
			}
			empty = false
		})
	}
	w.depth--
	if !empty {
		w.out.WriteString(indent)
	}
	w.out.WriteString("}" + tail + "\n")
}

func (w *writer) header() {
	switch {
	case w.file.GetSyntax() == "editions":
		w.line(fmt.Sprintf("edition = %q;", strings.TrimPrefix(w.file.GetEdition().String(), "EDITION_")))
	case w.file.GetSyntax() == "proto3":
		w.line(`syntax = "proto3";`)
	case w.proto2:
		w.line(`syntax = "proto2";`)
	}
	if w.file.GetPackage() != "" {
		w.line("package " + w.file.GetPackage() + ";")
	}
	if len(w.file.Dependency) == 0 {
		return
	}
	w.blank()
	type dependency struct {
		kind int
		name string
	}
	var all []dependency
	for i, name := range w.file.Dependency {
		d := dependency{0, name}
		if slices.Contains(w.file.PublicDependency, int32(i)) {
			d.kind = 1
		} else if slices.Contains(w.file.WeakDependency, int32(i)) {
			d.kind = 2
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b dependency) int {
		if a.kind == b.kind && w.normal {
			return strings.Compare(a.name, b.name)
		}
		return cmp.Compare(a.kind, b.kind)
	})
	for _, d := range all {
		w.line("import " + []string{"", "public ", "weak "}[d.kind] + quote(d.name) + ";")
	}
}

func (w *writer) optionLines(all []option) {
	for _, o := range all {
		w.line("option " + o.String() + ";")
	}
}

// sorted is all by less, in normal form; else as it came.
func sorted[T any](w *writer, all []T, compare func(a, b T) int) []T {
	if !w.normal {
		return all
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, compare)
	return all
}

func (w *writer) extend(all []*descriptorpb.FieldDescriptorProto, messages []*descriptorpb.DescriptorProto, begin func()) {
	if w.bare || len(all) == 0 {
		return
	}
	begin()
	var names []string
	of := map[string][]*descriptorpb.FieldDescriptorProto{}
	for _, f := range all {
		if of[f.GetExtendee()] == nil {
			names = append(names, f.GetExtendee())
		}
		of[f.GetExtendee()] = append(of[f.GetExtendee()], f)
	}
	for _, name := range names {
		w.block("extend "+name, "", func(begin func()) {
			begin()
			for _, f := range sorted(w, of[name], byNumber) {
				w.field(f, messages, false)
			}
		})
	}
}

func byNumber(a, b *descriptorpb.FieldDescriptorProto) int {
	return cmp.Compare(a.GetNumber(), b.GetNumber())
}
