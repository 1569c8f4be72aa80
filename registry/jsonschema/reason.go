package jsonschema

import (
	"fmt"
	"strings"
)

// Reason is one obstacle between two versions.
type Reason struct {
	Version  int  // the earlier one
	Backward bool // the new schema cannot read the earlier version's data, not the reverse
	Obstacle
}

// String names the place, the version and the mend.
func (r Reason) String() string {
	earlier := fmt.Sprintf("version %d", r.Version)
	whose := "the new schema cannot read data of " + earlier
	reader, writer := "the new schema", earlier
	said := sayingOf(r.Kind)
	mend := said.backward
	if !r.Backward {
		whose = "programs at " + earlier + " cannot read data of the new schema"
		reader, writer = writer, reader
		mend = said.forward
	}
	fill := strings.NewReplacer("READER", reader, "WRITER", writer, "EARLIER", earlier, "KEY", unescape(r.Path[strings.LastIndexByte(r.Path, '/')+1:]))
	return fmt.Sprintf("at %s, %s: %s (%s); to mend, %s", place(r.Path), whose, fill.Replace(said.fault), r.Kind, fill.Replace(mend))
}
