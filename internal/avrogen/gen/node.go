package gen

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// node is a JSON value that remembers the order of its members: a registered
// schema reads as its author wrote it, and its bytes do not change from one
// run to the next.
type node struct {
	kind    kind
	scalar  json.RawMessage
	members []member // of an object
	items   []*node  // of an array
}

type kind int

const (
	scalar kind = iota
	object
	array
)

type member struct {
	name  string
	value *node
}

func parseNode(text []byte) (*node, error) { return parseAt(text, 0) }

// parseAt reads JSON that stands at an offset of its file.
func parseAt(text []byte, offset int64) (*node, error) {
	var raw json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, &jsonError{offset + offsetOf(err, text), err.Error()}
	}
	offset += int64(bytes.Index(text, raw))
	switch raw[0] {
	case '{':
		return parseObject(raw, offset)
	case '[':
		return parseArray(raw, offset)
	default:
		return &node{scalar: raw}, nil
	}
}

func parseObject(raw json.RawMessage, offset int64) (*node, error) {
	n := &node{kind: object}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = dec.Token(); err != nil {
			break
		}
		key, _ := name.(string)
		if n.get(key) != nil {
			return nil, &jsonError{offset + dec.InputOffset(), fmt.Sprintf("%q is given twice", key)}
		}
		if err = dec.Decode(&value); err != nil {
			break
		}
		var child *node
		child, err = parseAt(value, offset+dec.InputOffset()-int64(len(value)))
		n.members = append(n.members, member{key, child})
	}
	return n, err
}

func parseArray(raw json.RawMessage, offset int64) (*node, error) {
	n := &node{kind: array}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var value json.RawMessage
		if err = dec.Decode(&value); err != nil {
			break
		}
		var item *node
		item, err = parseAt(value, offset+dec.InputOffset()-int64(len(value)))
		n.items = append(n.items, item)
	}
	return n, err
}

func stringNode(s string) *node { return &node{scalar: quote(s)} }

// quote leaves <, > and & alone, as the author wrote them.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimSpace(b.Bytes())
}

// get is the member called name, nil if there is none.
func (n *node) get(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// text is n's string, and whether n is one.
func (n *node) text() (s string, ok bool) {
	if n == nil || n.kind != scalar || n.scalar[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(n.scalar, &s) == nil
}

// str is the string member called name, "" if there is none.
func (n *node) str(name string) string {
	s, _ := n.get(name).text()
	return s
}

// defines reports whether n defines a named type this package knows.
func (n *node) defines() bool {
	t := n.str("type")
	return n.kind == object && (t == "record" || t == "enum")
}

// compact is n as JSON without white space.
func (n *node) compact() string {
	var b bytes.Buffer
	n.write(&b)
	return b.String()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case scalar:
		b.Write(n.scalar)
	case object:
		b.WriteByte('{')
		for i, m := range n.members {
			comma(b, i)
			b.Write(quote(m.name))
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	case array:
		b.WriteByte('[')
		for i, item := range n.items {
			comma(b, i)
			item.write(b)
		}
		b.WriteByte(']')
	}
}

func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}
