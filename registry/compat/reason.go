package compat

import (
	"fmt"
	"strings"

	"github.com/twmb/avro"
)

// Reason is one obstacle between two versions.
type Reason struct {
	Version  int  // the earlier one
	Backward bool // the new schema cannot read the earlier version's data, not the reverse
	Obstacle *avro.CompatibilityError
}

// String names the place, the version and the mend.
func (r Reason) String() string {
	where := "the top of the schema"
	if r.Obstacle.Path != "(root)" {
		where = fmt.Sprintf("field %q", strings.TrimPrefix(r.Obstacle.Path, "."))
	}
	whose := fmt.Sprintf("the new schema cannot read data of version %d", r.Version)
	if !r.Backward {
		whose = fmt.Sprintf("programs at version %d cannot read data of the new schema", r.Version)
	}
	return fmt.Sprintf("at %s, %s: %s; to mend, %s", where, whose, r.obstacle(), r.mend())
}

func (r Reason) obstacle() string {
	if r.Obstacle.ReaderType == "" || r.Obstacle.WriterType == "" || r.kind() == missingDefault {
		return r.Obstacle.Detail
	}
	return fmt.Sprintf("%s (written as %s, read as %s)", r.Obstacle.Detail, r.Obstacle.WriterType, r.Obstacle.ReaderType)
}

type obstacleKind int

const (
	otherObstacle obstacleKind = iota
	missingDefault
	missingSymbol
	missingBranch
	otherName
	otherType
)

// kind reads the detail's words, which is all the library tells. A detail it
// does not know still has a general mend.
func (r Reason) kind() obstacleKind {
	for _, k := range []struct {
		words string
		kind  obstacleKind
	}{
		{"no default and is missing", missingDefault},
		{"enum symbol", missingSymbol},
		{"union branch", missingBranch},
		{"names do not match", otherName},
		{"incompatible types", otherType},
		{"differ", otherType},
	} {
		if strings.Contains(r.Obstacle.Detail, k.words) {
			return k.kind
		}
	}
	return otherObstacle
}

func (r Reason) mend() string {
	switch r.kind() {
	case missingDefault:
		if r.Backward {
			return "give the new field a default"
		}
		return fmt.Sprintf("keep the field, which version %d has without a default", r.Version)
	case missingSymbol:
		if r.Backward {
			return "keep the symbol, or give the enum a default symbol"
		}
		return fmt.Sprintf("leave the symbol out, since the enum of version %d has no default symbol", r.Version)
	case missingBranch:
		if r.Backward {
			return "keep the type among those of the union"
		}
		return "keep to the types the earlier version knows; a new field with a default can hold the new one"
	case otherName:
		return "keep the name, or add the earlier one as an alias"
	case otherType:
		return "keep the type; add a field of another name, with a default, for the new one"
	case otherObstacle:
	}
	return "keep this part as it was"
}
