package jsonschema

import "github.com/waybillhq/waybill/registry/compat"

// Version is an earlier schema of a subject.
type Version struct {
	Number int
	Schema *Schema
}

// Check says what keeps candidate from following earlier, which ascends;
// nothing if it may.
func Check(level compat.Level, candidate *Schema, earlier []Version) []Reason {
	if n := len(earlier); n > 0 && !level.Transitive() {
		earlier = earlier[n-1:]
	}
	backward, forward := directions(level)
	var reasons []Reason
	for _, v := range earlier {
		was, is := newForge().node(v.Schema.root), newForge().node(candidate.root)
		if backward {
			reasons = append(reasons, tell(v.Number, true, obstacles(was, is))...)
		}
		if forward {
			reasons = append(reasons, tell(v.Number, false, obstacles(is, was))...)
		}
	}
	return reasons
}

// directions are who must read whom: the new schema old data, and programs at
// an old one new data.
func directions(level compat.Level) (backward, forward bool) {
	switch level {
	case compat.Backward, compat.BackwardTransitive:
		return true, false
	case compat.Forward, compat.ForwardTransitive:
		return false, true
	case compat.Full, compat.FullTransitive:
		return true, true
	case compat.None:
	}
	return false, false
}

func tell(number int, backward bool, all found) []Reason {
	out := make([]Reason, len(all))
	for i, o := range all {
		out[i] = Reason{number, backward, o}
	}
	return out
}
