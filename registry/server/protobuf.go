package server

import (
	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/protobuf"
)

type protobufLanguage struct{}

func (protobufLanguage) begin() reading { return &protobufReading{} }

// compact is the text as Confluent keeps it. A descriptor in base64 becomes a
// text, so that it is found under whichever of the two a client sends.
func (protobufLanguage) compact(text string) string {
	if short, err := protobuf.Canonical(text); err == nil {
		return short
	}
	return text
}

type protobufReading struct{ known protobuf.Imports }

// read knows a reference by the name under which texts import it.
func (r *protobufReading) read(name, text string, kept bool) (meaning, error) {
	if name != "" {
		return nil, r.known.Add(name, text)
	}
	s, err := r.known.Compile(text, kept)
	if err != nil {
		return nil, err
	}
	return protobufMeaning{s, text}, nil
}

type protobufMeaning struct {
	schema *protobuf.Schema
	text   string
}

func (m protobufMeaning) normal() (string, error) { return m.schema.Normal(), nil }

// order keeps apart what says the same and counts its messages otherwise:
// serializers write such a number before each value.
func (m protobufMeaning) order() string { return m.schema.Order() }

// format writes what clients ask for that parse no text.
func (m protobufMeaning) format(name string) (string, error) {
	switch name {
	case "serialized":
		return m.schema.Serialized()
	case "ignore_extensions":
		return protobuf.WithoutExtensions(m.text)
	}
	return m.text, nil
}

func (m protobufMeaning) follows(level compat.Level, earlier []numbered) []string {
	versions := make([]protobuf.Version, 0, len(earlier))
	for _, e := range earlier {
		if p, ok := e.meaning.(protobufMeaning); ok {
			versions = append(versions, protobuf.Version{Number: e.number, Schema: p.schema})
		}
	}
	var reasons []string
	for _, r := range protobuf.Check(level, m.schema, versions) {
		reasons = append(reasons, r.String())
	}
	return reasons
}
