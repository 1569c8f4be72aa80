package server

import (
	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/jsonschema"
)

type jsonLanguage struct{}

func (jsonLanguage) begin() reading { return &jsonReading{} }

func (jsonLanguage) compact(text string) string {
	if short, err := jsonschema.Compact(text); err == nil {
		return short
	}
	return text
}

// jsonReading gathers what a schema refers to. What refers to what is in the
// texts, by the names of the references.
type jsonReading struct{ known []jsonschema.Text }

func (r *jsonReading) read(name, text string, kept bool) (meaning, error) {
	if name != "" {
		r.known = append(r.known, jsonschema.Text{Name: name, Text: text})
		return jsonMeaning{}, nil // it is read with the schema itself
	}
	s, err := jsonschema.Parse(text, r.known, kept)
	return jsonMeaning{s}, err
}

type jsonMeaning struct{ *jsonschema.Schema }

func (m jsonMeaning) normal() (string, error) { return m.Normal() }

func (m jsonMeaning) follows(level compat.Level, earlier []numbered) []string {
	versions := make([]jsonschema.Version, 0, len(earlier))
	for _, e := range earlier {
		if j, ok := e.meaning.(jsonMeaning); ok {
			versions = append(versions, jsonschema.Version{Number: e.number, Schema: j.Schema})
		}
	}
	var reasons []string
	for _, r := range jsonschema.Check(level, m.Schema, versions) {
		reasons = append(reasons, r.String())
	}
	return reasons
}
