package jsonschema

import (
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// bounds are the kinds of a keyword that got stricter: there now, or with
// another value.
type bounds struct {
	key               string
	added, tightened  Kind
	tightensDownwards bool
}

func limit[T interface{ int | *big.Rat }](f *found, b bounds, writer, reader *T, compare func(writer, reader T) int) {
	switch {
	case reader == nil:
	case writer == nil:
		f.add(b.added, "/"+b.key)
	default:
		c := compare(*writer, *reader)
		if b.tightensDownwards && c > 0 || !b.tightensDownwards && c < 0 {
			f.add(b.tightened, "/"+b.key)
		}
	}
}

func (f *found) most(key string, added, decreased Kind, writer, reader *int) {
	limit(f, bounds{key, added, decreased, true}, writer, reader, func(a, b int) int { return a - b })
}

func (f *found) least(key string, added, increased Kind, writer, reader *int) {
	limit(f, bounds{key, added, increased, false}, writer, reader, func(a, b int) int { return a - b })
}

func (f *found) strings(w, r *jsonschema.Schema) {
	f.most("maxLength", MaxLengthAdded, MaxLengthDecreased, w.MaxLength, r.MaxLength)
	f.least("minLength", MinLengthAdded, MinLengthIncreased, w.MinLength, r.MinLength)
	switch {
	case r.Pattern == nil:
	case w.Pattern == nil:
		f.add(PatternAdded, "/pattern")
	case w.Pattern.String() != r.Pattern.String():
		f.add(PatternChanged, "/pattern")
	}
}

func (f *found) numbers(w, r *node) {
	for _, b := range []struct {
		bounds
		writer, reader *big.Rat
	}{
		{bounds{"maximum", MaximumAdded, MaximumDecreased, true}, maximum(w.from), maximum(r.from)},
		{bounds{"minimum", MinimumAdded, MinimumIncreased, false}, minimum(w.from), minimum(r.from)},
		{bounds{"exclusiveMaximum", ExclusiveMaxAdded, ExclusiveMaxDecreased, true}, w.from.ExclusiveMaximum, r.from.ExclusiveMaximum},
		{bounds{"exclusiveMinimum", ExclusiveMinAdded, ExclusiveMinIncreased, false}, w.from.ExclusiveMinimum, r.from.ExclusiveMinimum},
	} {
		limit(f, b.bounds, some(b.writer), some(b.reader), (*big.Rat).Cmp)
	}
	f.multiples(w.from.MultipleOf, r.from.MultipleOf)
	if r.integer && !w.integer {
		f.add(TypeNarrowed, "")
	}
}

func some(r *big.Rat) **big.Rat {
	if r == nil {
		return nil
	}
	return &r
}

// maximum is also, in draft 4, one that exclusiveMaximum: true goes with.
func maximum(s *jsonschema.Schema) *big.Rat {
	if s.DraftVersion == 4 && s.Maximum == nil {
		return s.ExclusiveMaximum
	}
	return s.Maximum
}

func minimum(s *jsonschema.Schema) *big.Rat {
	if s.DraftVersion == 4 && s.Minimum == nil {
		return s.ExclusiveMinimum
	}
	return s.Minimum
}

func (f *found) multiples(w, r *big.Rat) {
	switch {
	case r == nil:
	case w == nil:
		f.add(MultipleOfAdded, "/multipleOf")
	case w.Cmp(r) == 0 || divides(r, w):
	case divides(w, r):
		f.add(MultipleOfExpanded, "/multipleOf")
	default:
		f.add(MultipleOfChanged, "/multipleOf")
	}
}

func divides(a, b *big.Rat) bool {
	return a.Sign() != 0 && new(big.Rat).Quo(b, a).IsInt()
}

func (f *found) choices(w, r []any) {
	writers, readers := keys(w), keys(r)
	switch {
	case within(writers, readers):
	case within(readers, writers):
		f.add(EnumNarrowed, "/enum")
	default:
		f.add(EnumChanged, "/enum")
	}
}

func keys(values []any) map[string]bool {
	out := map[string]bool{}
	for _, v := range values {
		out[valueKey(v)] = true
	}
	return out
}

// within is whether all of a are in b.
func within[K comparable](a, b map[K]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}
