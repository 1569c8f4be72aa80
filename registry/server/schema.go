package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// referenceDepth bounds chains of references.
const referenceDepth = 32

// content is a schema's text and what it refers to, apart from any subject.
type content struct {
	id   int
	kind string // "" for Avro, as in the topic
	text string
	refs []reference
	// What Confluent's data contracts add. It is kept and handed out as it
	// came; it takes effect in clients, not here.
	metadata, rules json.RawMessage
	users           int // versions, deleted ones too

	once     sync.Once
	parsed   meaning
	parseErr error
	normal   func() (string, error)
}

// digest tells contents apart: one digest, one id. It stands for the text, so
// that an index over all schemas does not hold their texts twice.
type digest [sha256.Size]byte

func (c *content) identity() digest {
	h := sha256.New()
	for _, part := range []string{c.kind, c.text, string(c.metadata), string(c.rules)} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	if len(c.refs) > 0 {
		h.Write(encode(c.refs))
	}
	return digest(h.Sum(nil))
}

// compile reads the schema, once, after those it refers to. It is read late
// since most of a large registry is only ever handed out as text, and since an
// old registry may have taken what no longer parses. The caller holds the
// state's lock.
func (st *state) compile(c *content) (meaning, error) {
	c.once.Do(func() {
		lang, err := languageOf(c.kind)
		if err != nil {
			c.parseErr = err
			return
		}
		c.parsed, c.parseErr = st.parse(c, &walk{reading: lang.begin(), kind: c.kind, done: map[visit]bool{}}, "", 0)
		if c.parseErr == nil {
			c.normal = sync.OnceValues(c.parsed.normal)
		}
	})
	return c.parsed, c.parseErr
}

// walk goes over a schema and what it refers to. What several references lead
// to is read once: where each of a row of schemas refers to the one before it
// twice, the ways to the first double with every schema. Where the name of a
// reference counts, as everywhere but in Avro, a schema of two names is read
// under both.
type walk struct {
	reading
	kind string
	done map[visit]bool
}

// visit is a schema under the name that it is referred to by.
type visit struct {
	content *content
	name    string
}

// visit makes one of names in the languages whose texts import by name: there
// each of them must be known. Avro's texts name types, and a name that means
// nothing must not make a schema be read again.
func (w *walk) visit(c *content, name string) visit {
	if w.kind == kindIn(kindAvro) {
		name = ""
	}
	return visit{c, name}
}

func (st *state) parse(c *content, w *walk, name string, depth int) (meaning, error) {
	if c.kind != w.kind {
		return nil, fmt.Errorf("it is of type %s; a schema of type %s refers only to its own kind",
			cmp.Or(c.kind, kindAvro), cmp.Or(w.kind, kindAvro))
	}
	if depth > referenceDepth {
		return nil, fmt.Errorf("references go deeper than %d", referenceDepth)
	}
	for _, ref := range c.refs {
		v := st.find(ref.Subject, ref.Version)
		if v == nil {
			return nil, fmt.Errorf("reference %q: subject %q has no version %d", ref.Name, ref.Subject, ref.Version)
		}
		if w.done[w.visit(v.content, ref.Name)] {
			continue
		}
		if _, err := st.parse(v.content, w, ref.Name, depth+1); err != nil {
			return nil, fmt.Errorf("reference %q: %w", ref.Name, err)
		}
	}
	w.done[w.visit(c, name)] = true
	return w.read(name, c.text, c.id > 0)
}

// same is whether c, as asked for, is what is kept in there. Who sends no
// metadata and no rules means the schema alone.
func (st *state) same(there, c *content) bool {
	if !slices.Equal(there.refs, c.refs) || there.kind != c.kind {
		return false
	}
	if !c.plain() && (string(there.metadata) != string(c.metadata) || string(there.rules) != string(c.rules)) {
		return false
	}
	if there.text == c.text {
		return true
	}
	meantA, errA := st.compile(there)
	meantB, errB := st.compile(c)
	if errA != nil || errB != nil || orderOf(meantA) != orderOf(meantB) {
		return false
	}
	a, errA := there.normal()
	b, errB := c.normal()
	if c.kind == kindJSON && b != c.text {
		return false // as Confluent: other orders are others, unless the normal form was asked for
	}
	return errA == nil && errB == nil && a == b
}

// ordered is a meaning in which the places of parts count, although its normal
// form does not tell them apart.
type ordered interface{ order() string }

func orderOf(m meaning) string {
	if o, ok := m.(ordered); ok {
		return o.order()
	}
	return ""
}

func (c *content) plain() bool { return c.metadata == nil && c.rules == nil }
