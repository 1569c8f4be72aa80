package protobuf

import (
	"strings"

	"github.com/waybillhq/waybill/registry/compat"
)

// Version is an earlier schema of a subject.
type Version struct {
	Number int
	Schema *Schema
}

// Check says what keeps candidate from following earlier, which ascends;
// nothing if it may. Of each version and direction the first obstacles are
// told, at most ten.
func Check(level compat.Level, candidate *Schema, earlier []Version) []Reason {
	if n := len(earlier); n > 0 && !level.Transitive() {
		earlier = earlier[n-1:]
	}
	full := strings.HasPrefix(string(level), "FULL")
	var reasons []Reason
	add := func(number int, backward bool, found []Difference) {
		for _, d := range found {
			reasons = append(reasons, Reason{number, backward, d})
		}
	}
	for _, v := range earlier {
		if full || strings.HasPrefix(string(level), "BACKWARD") {
			add(v.Number, true, differences(v.Schema, candidate))
		}
		if full || strings.HasPrefix(string(level), "FORWARD") {
			add(v.Number, false, differences(candidate, v.Schema))
		}
	}
	return reasons
}
