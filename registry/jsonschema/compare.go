package jsonschema

// Limits of one comparison of two schemas in one direction.
const (
	pairLimit  = 100_000 // pairs of places looked at
	chainLimit = 1_000   // pairs within pairs
	toldLimit  = 20      // obstacles told of a pair
)

// Obstacle is what keeps a reader from what a writer may have written.
type Obstacle struct {
	Kind Kind
	Path string // of the place, as a JSON pointer; "" for the schema itself
}

// found are the obstacles of a pair of places, with paths relative to it.
type found []Obstacle

func (f *found) add(kind Kind, path string) { f.join(path, found{{kind, ""}}) }

func (f *found) join(path string, more found) {
	for _, o := range more {
		if len(*f) == toldLimit {
			return
		}
		*f = append(*f, Obstacle{o.Kind, path + o.Path})
	}
}

// pair is a writer's place and a reader's.
type pair struct{ writer, reader *node }

// differ finds what keeps reader from taking what writer allows. Pairs are
// looked at once. One that is met within itself is taken to be fine, and the
// whole is done again with the pairs known that turned out not to be, until no
// more do.
type differ struct {
	memo, seed map[pair]found
	doing      map[pair]bool
	assumed    bool // that a pair within itself is fine
	left       int
	spent      bool
}

// obstacles compares two schemas.
func obstacles(writer, reader *node) found {
	d := &differ{seed: map[pair]found{}, left: pairLimit}
	for {
		d.memo, d.doing, d.assumed = map[pair]found{}, map[pair]bool{}, false
		out := d.compare(writer, reader)
		if d.spent {
			return found{{Kind: TooLargeToCompare}}
		}
		known := len(d.seed)
		for p, f := range d.memo {
			if len(f) > 0 {
				d.seed[p] = f
			}
		}
		if !d.assumed || len(d.seed) == known {
			return out
		}
	}
}

func (d *differ) compare(writer, reader *node) found {
	switch {
	case reader == nil:
		return nil
	case writer == nil:
		return found{{Kind: SchemaAdded}}
	}
	p := pair{writer, reader}
	if f, ok := d.memo[p]; ok {
		return f
	}
	if d.doing[p] {
		d.assumed = d.assumed || d.seed[p] == nil
		return d.seed[p]
	}
	d.left--
	if d.spent = d.spent || d.left < 0 || len(d.doing) > chainLimit; d.spent {
		return found{{Kind: TooLargeToCompare}}
	}
	d.doing[p] = true
	f := d.shapes(writer, reader)
	delete(d.doing, p)
	d.memo[p] = f
	return f
}

func (d *differ) fine(writer, reader *node) bool { return len(d.compare(writer, reader)) == 0 }

// shapes compares two places that are there.
func (d *differ) shapes(w, r *node) found {
	if d.single(w, r) {
		return nil
	}
	if w.shape != r.shape {
		if w.shape == nothing || r.shape == anything || w.bytes && r.bytes {
			return nil
		}
		return found{{Kind: TypeChanged}}
	}
	var f found
	switch w.shape {
	case text:
		f.strings(w.from, r.from)
	case number:
		f.numbers(w, r)
	case choice:
		f.choices(w.from.Enum.Values, r.from.Enum.Values)
	case constant:
		if valueKey(*w.from.Const) != valueKey(*r.from.Const) {
			f.add(EnumChanged, "/const")
		}
	case combined:
		d.combinations(&f, w, r)
	case negation:
		if not := d.compare(r.sub(r.from.Not), w.sub(w.from.Not)); len(not) > 0 {
			f.add(NotExtended, "/not")
		}
	case properties:
		d.objects(&f, w, r)
	case array:
		d.arrays(&f, w, r)
	case anything, nothing, boolean, null, conditional: // nothing more to compare
	}
	return f
}
