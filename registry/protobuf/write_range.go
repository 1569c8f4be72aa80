package protobuf

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

const lastNumber = 536_870_911

// span is a range of numbers, both ends in it.
type span struct {
	from, to, last int32
	options        *descriptorpb.ExtensionRangeOptions
}

func (s span) String() string {
	switch {
	case s.from == s.to:
		return strconv.Itoa(int(s.from))
	case s.to >= s.last:
		return fmt.Sprintf("%d to max", s.from)
	}
	return fmt.Sprintf("%d to %d", s.from, s.to)
}

func bySpan(a, b span) int { return cmp.Compare(a.from, b.from) }

func messageRanges(m *descriptorpb.DescriptorProto) []span {
	var out []span
	for _, r := range m.ReservedRange {
		out = append(out, span{r.GetStart(), r.GetEnd() - 1, lastNumber, nil})
	}
	return out
}

func (w *writer) reserved(spans []span, names []string, begin func()) {
	if len(spans)+len(names) > 0 {
		begin()
	}
	for _, s := range sorted(w, spans, bySpan) {
		w.line("reserved " + s.String() + ";")
	}
	for _, name := range sorted(w, names, strings.Compare) {
		if w.file.GetSyntax() != "editions" {
			name = quote(name)
		}
		w.line("reserved " + name + ";")
	}
}

func (w *writer) extensions(ranges []*descriptorpb.DescriptorProto_ExtensionRange, begin func()) {
	if w.bare || len(ranges) == 0 {
		return
	}
	begin()
	var spans []span
	for _, r := range ranges {
		spans = append(spans, span{r.GetStart(), r.GetEnd() - 1, lastNumber, r.GetOptions()})
	}
	for _, s := range sorted(w, spans, bySpan) {
		w.line("extensions " + s.String() + list(w.options(s.options)) + ";")
	}
}
