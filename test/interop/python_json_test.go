package interop

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

const (
	jsonPlace  = `{"$id":"https://example.com/place.json","type":"object","properties":{"city":{"type":"string"}},"additionalProperties":false}`
	jsonNoteV1 = `{"$schema":"http://json-schema.org/draft-07/schema#","title":"Note","type":"object","properties":{"text":{"type":"string"},"at":{"$ref":"place.json"}},"required":["text"],"additionalProperties":false}`
	jsonNoteV2 = `{"$schema":"http://json-schema.org/draft-07/schema#","title":"Note","type":"object","properties":{"text":{"type":"string"},"stars":{"type":"integer"},"at":{"$ref":"place.json"}},"required":["text"],"additionalProperties":false}`
	// jsonNoteV3 may not follow: its texts are shorter.
	jsonNoteV3 = `{"title":"Note","type":"object","properties":{"text":{"type":"string","maxLength":1}},"additionalProperties":false}`
)

// jsonSchema is json_schema.py for orders that must succeed.
func (h *house) jsonSchema(orders ...order) []value {
	h.Helper()
	out, failed := h.try("json_schema.py", orders...)
	if failed {
		h.Fatalf("json_schema.py: %s", out)
	}
	return h.values(out)
}

// Schemas that refer to others and that follow each other, written and read by
// Confluent's serializers, which validate on either side.
func TestPythonsJSONSchemaSerializersAgreeWithTheRegistry(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	place, topic := h.topic("places"), h.topic("notes")
	h.jsonSchema(order{"do": "produce", "topic": place, "schema": jsonPlace, "values": []value{{Key: "k", Value: map[string]any{"city": "Braga"}}}})
	refs := [][]any{{"place.json", place + "-value", 1}}
	first := value{Key: "k", Value: map[string]any{"text": "olá", "at": map[string]any{"city": "Évora"}}}
	second := value{Key: "k", Value: map[string]any{"text": "x", "stars": 5}}
	h.jsonSchema(
		order{"do": "produce", "topic": topic, "schema": jsonNoteV1, "references": refs, "values": []value{first}},
		order{"do": "produce", "topic": topic, "schema": jsonNoteV2, "references": refs, "values": []value{second}},
		order{"do": "produce", "topic": topic, "schema": jsonNoteV2, "references": refs, "values": []value{second}, "serializer": order{"auto.register.schemas": false}},
		order{"do": "produce", "topic": topic, "schema": jsonNoteV1, "references": refs, "values": []value{second}, "serializer": order{"auto.register.schemas": false, "use.latest.version": true}},
		order{"do": "produce", "topic": topic, "schema": jsonNoteV1, "references": refs, "values": []value{first}, "serializer": order{"normalize.schemas": true}},
	)
	got := h.jsonSchema(order{"do": "consume", "topic": topic, "count": 5})
	if len(got) != 5 || got[0].Value["text"] != "olá" || got[1].Value["stars"] != 5.0 || got[4].Value["at"] == nil {
		t.Errorf("%+v", got)
	}
	// Identifiers and bodies are as the wire format has them, and a schema in
	// normal form is the one that is there.
	for i, rec := range h.read(topic, 5) {
		id, body, err := registry.SplitHeader(rec.Value)
		if want := []int{2, 3, 3, 3, 2}[i]; err != nil || id != want || !bytes.HasPrefix(body, []byte("{")) {
			t.Errorf("record %d: schema %d, want %d, %q, %v", i, id, want, body, err)
		}
	}
	refused := h.jsonSchema(
		order{"do": "produce", "topic": topic, "schema": jsonNoteV3, "values": []value{second}, "refusable": true},
		order{"do": "produce", "topic": topic, "schema": `{"type":"text"}`, "values": []value{second}, "refusable": true},
	)
	if len(refused) != 2 || refused[0].Refused != http.StatusConflict || !strings.Contains(refused[0].Says, "#/properties/text/maxLength") ||
		refused[1].Refused != http.StatusUnprocessableEntity {
		t.Errorf("%+v", refused)
	}
}
