// Package compat says whether an Avro schema may follow the earlier versions
// of its subject, and if not, why and how to mend it.
//
// The rules are Avro's schema resolution, under the levels schema registries
// agree on. Of each version and direction the first obstacle is told, not all.
package compat

import (
	"errors"
	"slices"
	"strings"

	"github.com/twmb/avro"
)

// Level is how far a schema may differ from the earlier ones.
type Level string

// The levels: backward means that the new schema reads old data, forward that
// old schemas read new data; transitive looks at every version, not only at
// the latest.
const (
	None               Level = "NONE"
	Backward           Level = "BACKWARD"
	BackwardTransitive Level = "BACKWARD_TRANSITIVE"
	Forward            Level = "FORWARD"
	ForwardTransitive  Level = "FORWARD_TRANSITIVE"
	Full               Level = "FULL"
	FullTransitive     Level = "FULL_TRANSITIVE"
)

// Levels are all of them.
func Levels() []Level {
	return []Level{None, Backward, BackwardTransitive, Forward, ForwardTransitive, Full, FullTransitive}
}

// ParseLevel reads a level in any case.
func ParseLevel(s string) (Level, bool) {
	l := Level(strings.ToUpper(s))
	return l, slices.Contains(Levels(), l)
}

// Transitive is whether every version counts.
func (l Level) Transitive() bool { return strings.HasSuffix(string(l), "_TRANSITIVE") }

func (l Level) backward() bool { return l.is("BACKWARD") || l.is("FULL") }
func (l Level) forward() bool  { return l.is("FORWARD") || l.is("FULL") }

func (l Level) is(direction string) bool { return strings.HasPrefix(string(l), direction) }

// Version is an earlier schema of a subject.
type Version struct {
	Number int
	Schema *avro.Schema
	Reader *avro.Schema // Strict(Schema), where many checks are made; else nil
}

// Check says what keeps candidate from following earlier, which ascends;
// nothing if it may.
func Check(level Level, candidate *avro.Schema, earlier []Version) []Reason {
	if n := len(earlier); n > 0 && !level.Transitive() {
		earlier = earlier[n-1:]
	}
	reader := Strict(candidate)
	var reasons []Reason
	add := func(number int, backward bool, err error) {
		var obstacle *avro.CompatibilityError
		if errors.As(err, &obstacle) {
			reasons = append(reasons, Reason{number, backward, obstacle})
		}
	}
	for _, v := range earlier {
		if level.backward() {
			add(v.Number, true, avro.CheckCompatibility(v.Schema, reader))
		}
		if level.forward() {
			if v.Reader == nil {
				v.Reader = Strict(v.Schema)
			}
			add(v.Number, false, avro.CheckCompatibility(candidate, v.Reader))
		}
	}
	return reasons
}
