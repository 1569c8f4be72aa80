package protobuf

import (
	"fmt"

	"google.golang.org/protobuf/types/descriptorpb"
)

// A small text may ask for much work: names that grow with every level of
// nesting, literals within literals. These bounds are far above what people
// write.
const (
	sizeLimit    = 8 << 20  // bytes of a schema and all it imports
	fileLimit    = 1000     // names imported, directly or not
	bracketLimit = 100      // brackets within brackets
	wordLimit    = 255      // bytes of an identifier
	nameLimit    = 32 << 20 // bytes of all full names, once for each level they stand at
	nestingLimit = 32       // messages within messages, as protoc has it
)

// bounded looks at a text before it is parsed. It knows comments and strings
// as far as it must to leave out what stands in them.
func bounded(text string) error {
	if len(text) > sizeLimit {
		return fmt.Errorf("it is larger than %d bytes", sizeLimit)
	}
	depth, word := 0, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if isWord(c) {
			if word++; word > wordLimit {
				return fmt.Errorf("a name is longer than %d bytes", wordLimit)
			}
			continue
		}
		word = 0
		switch c {
		case '{', '[', '<', '(':
			if depth++; depth > bracketLimit {
				return fmt.Errorf("brackets stand more than %d deep", bracketLimit)
			}
		case '}', ']', '>', ')':
			depth--
		case '"', '\'', '/':
			i = skip(text, i)
		}
	}
	return nil
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// skip is the last byte of the string or the comment that begins at i, or i.
func skip(text string, i int) int {
	begin, j := text[i], i+1
	if begin == '/' {
		if j == len(text) || text[j] != '/' && text[j] != '*' {
			return i
		}
		block := text[j] == '*'
		for j++; j < len(text); j++ {
			if !block && text[j] == '\n' || block && text[j] == '/' && text[j-1] == '*' && j > i+2 {
				break
			}
		}
		return j
	}
	for ; j < len(text) && text[j] != begin && text[j] != '\n'; j++ {
		if text[j] == '\\' {
			j++
		}
	}
	return j
}

// weigh adds up what the names of a file cost whoever resolves them.
func weigh(file *descriptorpb.FileDescriptorProto) error {
	w := &weight{}
	scope := len(file.GetPackage())
	for _, m := range file.MessageType {
		w.message(m, scope, 1)
	}
	for _, e := range file.EnumType {
		w.enum(e, scope, 1)
	}
	w.fields(file.Extension, scope, 1)
	for _, s := range file.Service {
		for _, m := range s.Method {
			w.add(scope+len(s.GetName())+len(m.GetName())+len(m.GetInputType())+len(m.GetOutputType()), 1)
		}
	}
	switch {
	case w.depth > nestingLimit:
		return fmt.Errorf("messages stand more than %d deep", nestingLimit)
	case w.bytes > nameLimit:
		return fmt.Errorf("its names are too long for their number; shorten them, or split the file")
	}
	return nil
}

type weight struct{ bytes, depth int }

func (w *weight) add(n, depth int) { w.bytes += n * depth }

func (w *weight) message(m *descriptorpb.DescriptorProto, scope, depth int) {
	if w.depth = max(w.depth, depth); depth > nestingLimit {
		return
	}
	scope += len(m.GetName()) + 1
	w.add(scope, depth)
	w.fields(m.Field, scope, depth+1)
	w.fields(m.Extension, scope, depth+1)
	for _, n := range m.NestedType {
		w.message(n, scope, depth+1)
	}
	for _, e := range m.EnumType {
		w.enum(e, scope, depth+1)
	}
}

func (w *weight) fields(all []*descriptorpb.FieldDescriptorProto, scope, depth int) {
	for _, f := range all {
		w.add(scope+len(f.GetName())+len(f.GetTypeName())+len(f.GetExtendee()), depth)
	}
}

func (w *weight) enum(e *descriptorpb.EnumDescriptorProto, scope, depth int) {
	for _, v := range e.Value {
		w.add(scope+len(e.GetName())+len(v.GetName()), depth)
	}
}
