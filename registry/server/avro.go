package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/registry/compat"
)

type avroLanguage struct{}

func (avroLanguage) begin() reading { return &avroReading{} }

func (avroLanguage) compact(text string) string {
	var short bytes.Buffer
	if json.Compact(&short, []byte(text)) == nil {
		return short.String()
	}
	return text
}

type avroReading struct{ known avro.SchemaCache }

// read has no use for the name of a reference: texts name their types.
func (r *avroReading) read(_, text string, kept bool) (meaning, error) {
	s, err := r.known.Parse(text)
	if err == nil {
		return newAvro(s, ""), nil
	}
	if !kept {
		return nil, err
	}
	if s, err = compat.ParseLegacy(&r.known, text); err != nil {
		return nil, err
	}
	return newAvro(s, text), nil
}

type avroMeaning struct {
	schema *avro.Schema
	reader func() *avro.Schema // compat.Strict of it, made once
	legacy string              // the text, where the schema is only near to it
}

func newAvro(s *avro.Schema, legacy string) avroMeaning {
	return avroMeaning{s, sync.OnceValue(func() *avro.Schema { return compat.Strict(s) }), legacy}
}

// normal keeps documentation, defaults, aliases and properties: texts that
// differ only in white space, the order of attributes or the place of the
// namespace become one.
func (m avroMeaning) normal() (string, error) {
	if m.legacy != "" {
		return m.legacy, nil
	}
	root := m.schema.Root()
	splitNames(root)
	again, err := root.Schema()
	if err != nil {
		return "", err
	}
	return javaText(again.String())
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

func (m avroMeaning) follows(level compat.Level, earlier []numbered) []string {
	versions := make([]compat.Version, 0, len(earlier))
	for _, e := range earlier {
		if a, ok := e.meaning.(avroMeaning); ok {
			versions = append(versions, compat.Version{Number: e.number, Schema: a.schema, Reader: a.reader()})
		}
	}
	var reasons []string
	for _, r := range compat.Check(level, m.schema, versions) {
		reasons = append(reasons, r.String())
	}
	return reasons
}
