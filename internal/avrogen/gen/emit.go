package gen

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strconv"
	"strings"
)

// emit writes one file for each schema that defines something new, and the
// list of contracts.
func emit(pkg string, m *model) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, s := range m.sources {
		var b bytes.Buffer
		for _, t := range m.order {
			if t.source == s {
				writeType(&b, m, t)
			}
		}
		if err := add(out, pkg, s.goFile(), s.name, b.Bytes()); err != nil {
			return nil, err
		}
	}
	if len(m.contracts) == 0 {
		return out, nil
	}
	var b bytes.Buffer
	writeIndex(&b, m.contracts)
	return out, add(out, pkg, index, "*.avsc", b.Bytes())
}

func add(out map[string][]byte, pkg, name, from string, body []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s from %s; DO NOT EDIT.\n\npackage %s\n\n", marker, from, pkg)
	writeImports(&b, body)
	b.Write(body)
	text, err := format.Source(b.Bytes())
	if err != nil {
		return fmt.Errorf("%s: format: %w", name, err)
	}
	out[name] = text
	return nil
}

// writeImports finds the packages that body uses, in the three groups gci
// wants.
func writeImports(b *bytes.Buffer, body []byte) {
	groups := [][]struct{ use, path string }{
		{{"big.Rat", "math/big"}, {"sync.OnceValue", "sync"}, {"time.Time", "time"}},
		{{"uuid.UUID", "github.com/google/uuid"}},
		{{"event.", "github.com/waybillhq/waybill/event"}},
	}
	var lines []string
	for _, g := range groups {
		var paths []string
		for _, p := range g {
			if uses(body, p.use) {
				paths = append(paths, strconv.Quote(p.path))
			}
		}
		if len(paths) > 0 {
			lines = append(lines, strings.Join(paths, "\n"))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "import (\n%s\n)\n\n", strings.Join(lines, "\n\n"))
	}
}

// uses looks at code only: a schema or a comment may contain the same letters.
func uses(body []byte, name string) bool {
	for line := range strings.Lines(string(body)) {
		if !strings.Contains(line, "//") && !strings.HasPrefix(line, "const ") && strings.Contains(line, name) {
			return true
		}
	}
	return false
}

func writeType(b *bytes.Buffer, m *model, t *named) {
	if t.node.str("type") == "enum" {
		writeEnum(b, t)
		return
	}
	i := slices.IndexFunc(m.contracts, func(c *contract) bool { return c.named == t })
	if i < 0 {
		writeRecord(b, t, "is")
		return
	}
	writeRecord(b, t, "says that")
	writeContract(b, m.contracts[i])
}

func writeRecord(b *bytes.Buffer, t *named, verb string) {
	b.WriteString(typeComment(t, verb, "is the record"))
	fmt.Fprintf(b, "type %s struct {\n", t.goName)
	for _, f := range t.fields {
		b.WriteString(comment("\t", f.doc))
		omit := ""
		if f.nullable {
			omit = ",omitempty"
		}
		fmt.Fprintf(b, "\t%s %s `avro:%q json:%q`\n", f.goName, f.goType, f.name, f.name+omit)
	}
	b.WriteString("}\n\n")
}

func typeComment(t *named, verb, otherwise string) string {
	text := sentence(t.goName, verb, t.doc)
	if text == "" {
		text = fmt.Sprintf("%s %s %s.", t.goName, otherwise, t.full)
	}
	return comment("", text)
}

func writeEnum(b *bytes.Buffer, t *named) {
	b.WriteString(typeComment(t, "is", "is the enum"))
	fmt.Fprintf(b, "type %s string\n\n", t.goName)
	fmt.Fprintf(b, "// The symbols of %s.\nconst (\n", t.goName)
	names := make([]string, len(t.symbols))
	for i, s := range t.symbols {
		names[i] = s.goName
		fmt.Fprintf(b, "\t%s %s = %q\n", s.goName, t.goName, s.avro)
	}
	b.WriteString(")\n\n")
	list := strings.Join(names, ",\n\t\t")
	recv := strings.ToLower(t.goName[:1])
	fmt.Fprintf(b, "// Values lists the symbols in the order of the schema.\n")
	fmt.Fprintf(b, "func (%s) Values() []%s {\n\treturn []%s{\n\t\t%s,\n\t}\n}\n\n", t.goName, t.goName, t.goName, list)
	fmt.Fprintf(b, "// Valid reports whether %s is one of the symbols; no other value encodes.\n", recv)
	fmt.Fprintf(b, "func (%s %s) Valid() bool {\n\tswitch %s {\n\tcase %s:\n\t\treturn true\n\t}\n\treturn false\n}\n\n", recv, t.goName, recv, list)
}
