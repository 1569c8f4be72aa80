package config

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v3"
)

// Size is a number of bytes, written as 8GiB, 500 MB or 1048576.
type Size int64

// UnmarshalYAML reads a size.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	bytes, err := humanize.ParseBytes(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || bytes == 0 || bytes > math.MaxInt64 {
		return fmt.Errorf("line %d: %q is no size: want one such as 8GiB or 500MB", n.Line, n.Value)
	}
	*s = Size(bytes)
	return nil
}
