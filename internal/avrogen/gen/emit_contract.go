package gen

import (
	"bytes"
	"fmt"
	"strconv"
)

// writeContract leaves parsing to the first use: a program that imports all
// contracts pays at start for none it does not touch.
func writeContract(b *bytes.Buffer, c *contract) {
	v := unexported(c.goName)
	fmt.Fprintf(b, "// EventContract is the contract the type was generated from.\n")
	fmt.Fprintf(b, "func (%s) EventContract() *event.Contract { return %sContract() }\n\n", c.goName, v)
	writeKey(b, c)
	writeSequence(b, c)
	fmt.Fprintf(b, "const %sSchema = %s\n\n", v, literal(c.schema))
	fmt.Fprintf(b, "// %sContract parses the schema when first called.\n", v)
	fmt.Fprintf(b, "var %sContract = sync.OnceValue(func() *event.Contract {\n", v)
	fmt.Fprintf(b, "\treturn event.MustContract(%q, %q, %sSchema)\n})\n\n", c.topic, c.uri, v)
}

func writeSequence(b *bytes.Buffer, c *contract) {
	if c.sequence == nil {
		fmt.Fprintf(b, "// EventSequence is 0: the aggregate has no version.\n")
		fmt.Fprintf(b, "func (%s) EventSequence() int64 { return 0 }\n\n", c.goName)
		return
	}
	value := "e." + c.sequence.goName
	if c.sequence.goType != "int64" {
		value = "int64(" + value + ")"
	}
	fmt.Fprintf(b, "// EventSequence is the aggregate's version after the fact.\n")
	fmt.Fprintf(b, "func (e %s) EventSequence() int64 { return %s }\n\n", c.goName, value)
}

// literal is text in the form that is easier to read.
func literal(text string) string {
	if strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

// writeKey makes an id that nobody set an empty key, which is refused where
// events are written. Its text would be a key like any other, shared by all
// who forgot.
func writeKey(b *bytes.Buffer, c *contract) {
	if c.key.goType == "string" {
		fmt.Fprintf(b, "// EventKey is the aggregate's id.\n")
		fmt.Fprintf(b, "func (e %s) EventKey() string { return e.%s }\n\n", c.goName, c.key.goName)
		return
	}
	fmt.Fprintf(b, "// EventKey is the aggregate's id, \"\" if it was never set.\n")
	fmt.Fprintf(b, "func (e %s) EventKey() string {\n\tif e.%s == (uuid.UUID{}) {\n\t\treturn \"\"\n\t}\n", c.goName, c.key.goName)
	fmt.Fprintf(b, "\treturn e.%s.String()\n}\n\n", c.key.goName)
}

func writeIndex(b *bytes.Buffer, contracts []*contract) {
	b.WriteString("// All is every contract of the package, sorted by subject.\n")
	b.WriteString("func All() []*event.Contract {\n\treturn []*event.Contract{\n")
	for _, c := range contracts {
		fmt.Fprintf(b, "\t\t%sContract(),\n", unexported(c.goName))
	}
	b.WriteString("\t}\n}\n\n")
	b.WriteString("// New returns a pointer to decode an event of the Avro type typ into, and\n")
	b.WriteString("// whether the package knows that type.\n")
	b.WriteString("func New(typ string) (event.Data, bool) {\n\tswitch typ {\n")
	for _, c := range contracts {
		fmt.Fprintf(b, "\tcase %q:\n\t\treturn new(%s), true\n", c.full, c.goName)
	}
	b.WriteString("\t}\n\treturn nil, false\n}\n")
}
