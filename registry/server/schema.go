package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/avro"
)

// referenceDepth bounds chains of references.
const referenceDepth = 32

// content is a schema's text and what it refers to, apart from any subject.
type content struct {
	id    int
	kind  string // "" for Avro, as in the topic
	text  string
	refs  []reference
	users int // versions, deleted ones too

	once     sync.Once
	parsed   *avro.Schema
	parseErr error
	canon    func() string
}

// kindAvro is the one kind there is. Another kind is a case here and where a
// content is compiled and compared.
const kindAvro = "AVRO"

func checkKind(kind string) error {
	switch kind {
	case "", kindAvro:
		return nil
	default:
		return refuse(codeInvalidSchema, "Schemas of type %.32s are not supported by this registry, only %s", kind, kindAvro)
	}
}

// newContent takes the text as it was written, without the white space.
func newContent(text string, refs []reference) *content {
	var short bytes.Buffer
	if json.Compact(&short, []byte(text)) == nil {
		text = short.String()
	}
	return &content{text: text, refs: refs}
}

// identity tells contents apart: one identity, one id.
func (c *content) identity() string {
	if len(c.refs) == 0 {
		return c.kind + "\x00" + c.text
	}
	return c.kind + "\x00" + c.text + "\x00" + string(encode(c.refs))
}

// compile parses the schema, once, after those it refers to. It is parsed late
// since most of a large registry is only ever handed out as text, and since an
// old registry may have taken what no longer parses. The caller holds the
// state's lock.
func (st *state) compile(c *content) (*avro.Schema, error) {
	c.once.Do(func() {
		c.parsed, c.parseErr = st.parse(c, &reading{done: map[*content]bool{}}, 0)
		c.canon = sync.OnceValue(func() string { return canonical(c.parsed, c.text) })
	})
	return c.parsed, c.parseErr
}

// reading is a schema in the course of being parsed. What several references
// lead to is parsed once: where each of a row of schemas refers to the one
// before it twice, the ways to the first double with every schema.
type reading struct {
	known avro.SchemaCache
	done  map[*content]bool
}

func (st *state) parse(c *content, so *reading, depth int) (*avro.Schema, error) {
	if err := checkKind(c.kind); err != nil {
		return nil, err
	}
	if depth > referenceDepth {
		return nil, fmt.Errorf("references go deeper than %d", referenceDepth)
	}
	for _, ref := range c.refs {
		v := st.find(ref.Subject, ref.Version)
		if v == nil {
			return nil, fmt.Errorf("reference %q: subject %q has no version %d", ref.Name, ref.Subject, ref.Version)
		}
		if so.done[v.content] {
			continue
		}
		if _, err := st.parse(v.content, so, depth+1); err != nil {
			return nil, fmt.Errorf("reference %q: %w", ref.Name, err)
		}
	}
	so.done[c] = true
	return so.known.Parse(c.text)
}

// canonical writes a schema anew, keeping documentation, defaults, aliases and
// properties: texts that differ only in white space, the order of attributes
// or the place of the namespace become one.
func canonical(s *avro.Schema, text string) string {
	if s == nil {
		return text
	}
	root := s.Root()
	splitNames(root)
	again, err := root.Schema()
	if err != nil {
		return text
	}
	return again.String()
}

// splitNames gives every name its one spelling: namespace apart.
func splitNames(n *avro.SchemaNode) {
	if i := strings.LastIndexByte(n.Name, '.'); i >= 0 {
		n.Namespace, n.Name = n.Name[:i], n.Name[i+1:]
	}
	for i := range n.Fields {
		splitNames(&n.Fields[i].Type)
	}
	for i := range n.Branches {
		splitNames(&n.Branches[i])
	}
	if n.Items != nil {
		splitNames(n.Items)
	}
	if n.Values != nil {
		splitNames(n.Values)
	}
}

// same is whether two contents say the same.
func (st *state) same(a, b *content) bool {
	if !slices.Equal(a.refs, b.refs) || a.kind != b.kind {
		return false
	}
	if a.text == b.text {
		return true
	}
	_, errA := st.compile(a)
	_, errB := st.compile(b)
	return errA == nil && errB == nil && a.canon() == b.canon()
}
