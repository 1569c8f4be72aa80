package jsonschema

// single is whether one of a combination and a schema that is none suffices: a
// branch of the reader's that takes what the writer writes, or, of several
// conditions that the writer keeps, one that satisfies the reader.
func (d *differ) single(w, r *node) bool {
	switch {
	case w.shape != combined && r.shape == combined && (len(r.parts) == 1 || r.criterion != allOf):
		for _, p := range r.parts {
			if d.fine(w, p.node) {
				return true
			}
		}
	case w.shape == combined && r.shape != combined && (len(w.parts) == 1 || w.criterion == allOf):
		for _, p := range w.parts {
			if d.fine(p.node, r) {
				return true
			}
		}
	}
	return false
}

// combinations compares allOf, anyOf and oneOf.
func (d *differ) combinations(f *found, w, r *node) {
	if !kindred(w, r) {
		f.add(CombinedChanged, "")
		return
	}
	writers, readers := distinct(w.parts), distinct(r.parts)
	switch {
	case len(writers) < len(readers) && r.criterion == allOf:
		f.add(ProductExtended, "")
	case len(writers) > len(readers) && w.criterion != allOf:
		f.add(SumNarrowed, "")
	}
	m := matching{d: d, writers: writers, readers: readers}
	if m.size() < min(len(writers), len(readers)) {
		f.add(SubschemasChanged, "")
	}
}

// kindred is whether a reader's keyword is no stricter than the writer's.
func kindred(w, r *node) bool {
	lone := len(w.parts) == 1
	return w.criterion == r.criterion || r.criterion == anyOf || lone && len(r.parts) == 1 ||
		lone && r.criterion == oneOf || len(r.parts) == 1 && w.criterion == allOf
}

func distinct(parts []part) []part {
	seen := map[string]bool{}
	var out []part
	for _, p := range parts {
		if !seen[p.key] {
			seen[p.key] = true
			out = append(out, p)
		}
	}
	return out
}

// matching pairs each branch of one side with a branch of the other that goes
// with it, and no branch twice.
type matching struct {
	d                *differ
	writers, readers []part
	taken            []int // writer's index by reader's, -1 for none
}

// size is that of the largest matching. Branches that say the same are paired
// first, which is most of a long list; ways to pair what is left are then
// looked for, and pairs given up for them.
func (m *matching) size() int {
	byKey := map[string]int{}
	m.taken = make([]int, len(m.readers))
	for i, r := range m.readers {
		m.taken[i] = -1
		byKey[r.key] = i
	}
	var left []int
	size := 0
	for i, w := range m.writers {
		if j, ok := byKey[w.key]; ok && m.d.fine(w.node, m.readers[j].node) {
			m.taken[j] = i
			size++
			continue
		}
		left = append(left, i)
	}
	for _, i := range left {
		if size == len(m.readers) || m.d.spent {
			break
		}
		if m.augment(i, make([]bool, len(m.readers))) {
			size++
		}
	}
	return size
}

// augment finds a reader for a writer, one that is taken if its writer can move
// to another.
func (m *matching) augment(writer int, tried []bool) bool {
	for _, free := range []bool{true, false} {
		for j, r := range m.readers {
			if tried[j] || (m.taken[j] < 0) != free || m.d.spent || !m.d.fine(m.writers[writer].node, r.node) {
				continue
			}
			tried[j] = true
			if free || m.augment(m.taken[j], tried) {
				m.taken[j] = writer
				return true
			}
		}
	}
	return false
}
