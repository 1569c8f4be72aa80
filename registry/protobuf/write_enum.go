package protobuf

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

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
