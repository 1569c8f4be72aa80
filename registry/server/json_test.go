package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/waybillhq/waybill/broker/brokertest"
)

const jsonNote = `{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}`

// jsonRequest is the request body for a JSON Schema; references are name,
// subject, version.
func jsonRequest(text string, references ...any) string {
	refs := []map[string]any{}
	for i := 0; i < len(references); i += 3 {
		refs = append(refs, map[string]any{"name": references[i], "subject": references[i+1], "version": references[i+2]})
	}
	b, _ := json.Marshal(map[string]any{"schema": text, "schemaType": "JSON", "references": refs})
	return string(b)
}

func (r *registry) wantText(method, path, body string, status int, parts ...string) {
	r.Helper()
	code, got := r.ask(method, path, body)
	for _, part := range parts {
		if code != status || !strings.Contains(got, part) {
			r.Errorf("%s %s: %d %s\nwant %d and %s", method, path, code, got, status, part)
		}
	}
}

func TestJSONSchemaIsServedAsConfluentDoes(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/note/versions", jsonRequest(jsonNote), 200, `{"id":1}`)
	r.want("POST", "/subjects/note/versions", jsonRequest(" "+jsonNote+"\n"), 200, `{"id":1}`)
	r.want("POST", "/subjects/copy/versions", jsonRequest(jsonNote), 200, `{"id":1}`)
	answer := `"id":1,"schemaType":"JSON","schema":` + quote(jsonNote) + `}`
	r.want("GET", "/subjects/note/versions/1", "", 200, `{"subject":"note","version":1,`+answer)
	r.want("POST", "/subjects/note", jsonRequest(jsonNote), 200, `{"subject":"note","version":1,`+answer)
	r.want("GET", "/schemas/ids/1", "", 200, `{"schemaType":"JSON","schema":`+quote(jsonNote)+`}`)
	r.want("GET", "/schemas/ids/1/schema", "", 200, jsonNote)
	r.want("GET", "/schemas/ids/1/subjects", "", 200, `["copy","note"]`)
	r.want("GET", "/schemas?subjectPrefix=note", "", 200, `[{"subject":"note","version":1,`+answer+`]`)
	r.refused("POST", "/subjects/note", request(jsonNote), 422, 42201) // as Avro it is none
	// One text in two languages is two schemas.
	r.want("POST", "/subjects/avro/versions", request(`{"type":"string"}`), 200, `{"id":2}`)
	r.want("POST", "/subjects/json/versions", jsonRequest(`{"type":"string"}`), 200, `{"id":3}`)
	r.refused("POST", "/subjects/avro", jsonRequest(`{"type":"string"}`), 404, 40403)
	r.want("GET", "/schemas/ids/2", "", 200, `{"schema":"{\"type\":\"string\"}"}`)
}

func TestFranzGoClientKeepsJSONSchemas(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	made := must[sr.SubjectSchema](t)(r.sr.CreateSchema(t.Context(), "note", sr.Schema{Schema: jsonNote, Type: sr.TypeJSON}))
	if made.ID != 1 || made.Type != sr.TypeJSON || made.Schema.Schema != jsonNote {
		t.Errorf("%+v", made)
	}
	got, err := r.sr.CheckCompatibility(t.Context(), "note", -1, sr.Schema{Schema: `{"type":"string"}`, Type: sr.TypeJSON})
	if err != nil || got.Is {
		t.Errorf("%+v, %v", got, err)
	}
}

// A text is one schema letter by letter, and its normal form is asked for.
func TestOrderOfMembersCountsUnlessNormalized(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	const turned = `{"properties":{"text":{"type":"string"}},"type":"object","additionalProperties":false}`
	const normal = `{"additionalProperties":false,"properties":{"text":{"type":"string"}},"type":"object"}`
	r.want("POST", "/subjects/note/versions", jsonRequest(jsonNote), 200, `{"id":1}`)
	r.refused("POST", "/subjects/note", jsonRequest(turned), 404, 40403)
	r.wantText("POST", "/subjects/note?normalize=true", jsonRequest(turned), 200, `"id":1`)
	r.want("POST", "/subjects/note/versions?normalize=true", jsonRequest(turned), 200, `{"id":1}`)
	r.want("POST", "/subjects/note/versions", jsonRequest(turned), 200, `{"id":2}`)
	r.want("POST", "/subjects/other/versions?normalize=true", jsonRequest(turned), 200, `{"id":3}`)
	r.want("GET", "/subjects/other/versions/1/schema", "", 200, normal)
	if _, got := r.ask("GET", "/subjects/other/versions/1/schema", ""); got != normal {
		t.Errorf("normal form %s", got)
	}
	r.want("PUT", "/config/note", `{"normalize":true,"compatibility":"NONE"}`, 200, `{"normalize":true,"compatibility":"NONE"}`)
	r.want("POST", "/subjects/note/versions", jsonRequest(strings.Replace(turned, "text", "mark", 1)), 200, `{"id":4}`)
	if _, got := r.ask("GET", "/schemas/ids/4/schema", ""); got != strings.Replace(normal, "text", "mark", 1) {
		t.Errorf("normal form by config %s", got)
	}
}

func TestIncompatibleJSONSchemaIsRefusedWithPlaceVersionAndMend(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/note/versions", jsonRequest(jsonNote), 200, `{"id":1}`)
	narrower := strings.Replace(jsonNote, `{"type":"string"}`, `{"type":"string","maxLength":3}`, 1)
	wider := strings.Replace(jsonNote, `"properties":{`, `"properties":{"by":{"type":"string"},`, 1)
	r.wantText("POST", "/subjects/note/versions", jsonRequest(narrower), 409, `#/properties/text/maxLength`, `version 1`, `to mend, leave maxLength out`)
	r.want("POST", "/compatibility/subjects/note/versions/latest", jsonRequest(narrower), 200, `{"is_compatible":false}`)
	r.wantText("POST", "/compatibility/subjects/note/versions?verbose=true", jsonRequest(narrower), 200, `"is_compatible":false`, `MAX_LENGTH_ADDED`)
	r.want("POST", "/compatibility/subjects/note/versions?verbose=true", jsonRequest(wider), 200, `{"is_compatible":true}`)
	r.want("POST", "/subjects/note/versions", jsonRequest(wider), 200, `{"id":2}`)
	r.want("PUT", "/config/note", `{"compatibility":"FORWARD"}`, 200, `{"compatibility":"FORWARD"}`)
	r.wantText("POST", "/subjects/note/versions", jsonRequest(strings.Replace(wider, "string", "number", 1)), 409, `programs at version 2`)
	r.want("PUT", "/config/note", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.want("POST", "/subjects/note/versions", jsonRequest(narrower), 200, `{"id":3}`)
	r.want("PUT", "/config/note", `{"compatibility":"BACKWARD_TRANSITIVE"}`, 200, `{"compatibility":"BACKWARD_TRANSITIVE"}`)
	longer := strings.Replace(narrower, `3`, `4`, 1)
	r.wantText("POST", "/subjects/note/versions", jsonRequest(longer), 409, `version 1`, `version 2`)
	// Another language has no compatibility with it.
	r.wantText("POST", "/subjects/note/versions", schema(fieldA), 409, `another type`)
}

func TestInvalidJSONSchemaIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	for text, want := range map[string]string{
		`{"type":"text"}`:              `#/type`,
		`"string"`:                     `an object`,
		`{"type":`:                     `not JSON`,
		`{"$ref":"http://10.0.0.1/x"}`: `nothing is fetched`,
		`{"$ref":"absent.json"}`:       `name it in references`,
	} {
		r.wantText("POST", "/subjects/bad/versions", jsonRequest(text), 422, want, `42201`)
		r.wantText("POST", "/compatibility/subjects/bad/versions?verbose=true", jsonRequest(text), 200, want)
	}
	r.want("GET", "/subjects", "", 200, `[]`)
}

func TestJSONSchemaRefersToOthersByName(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/money/versions", jsonRequest(`{"type":"object","properties":{"cents":{"type":"integer"}},"additionalProperties":false}`), 200, `{"id":1}`)
	using := `{"$id":"https://example.com/order.json","type":"object","properties":{"price":{"$ref":"money.json"}},"additionalProperties":false}`
	r.wantText("POST", "/subjects/order/versions", jsonRequest(using), 422, `money.json`)
	r.want("POST", "/subjects/order/versions", jsonRequest(using, "money.json", "money", 1), 200, `{"id":2}`)
	r.want("GET", "/schemas/ids/2", "", 200, `{"schemaType":"JSON","schema":`+quote(using)+`,"references":[{"name":"money.json","subject":"money","version":1}]}`)
	r.want("GET", "/subjects/money/versions/1/referencedby", "", 200, `[2]`)
	r.refused("DELETE", "/subjects/money", "", 422, 42206)
	// What is referred to is compared with the schema.
	r.want("PUT", "/config/money", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.want("POST", "/subjects/money/versions", jsonRequest(`{"type":"object","properties":{"cents":{"type":"string"}},"additionalProperties":false}`), 200, `{"id":3}`)
	r.wantText("POST", "/subjects/order/versions", jsonRequest(using, "money.json", "money", 2), 409, `#/properties/price/properties/cents`)
	// A reference of a reference goes by the name that the one between has for it.
	r.want("POST", "/subjects/cart/versions", jsonRequest(`{"type":"array","items":{"$ref":"order.json"}}`, "order.json", "order", 1), 200, `{"id":4}`)
	r.want("DELETE", "/subjects/cart", "", 200, `[1]`)
	r.want("DELETE", "/subjects/order", "", 200, `[1]`)
	r.want("POST", "/subjects/order/versions", jsonRequest(using, "money.json", "money", 1), 200, `{"id":2}`) // its id again
}

func TestOneTextUnderTwoNamesIsFoundUnderBoth(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/money/versions", jsonRequest(`{"type":"integer"}`), 200, `{"id":1}`)
	r.want("POST", "/subjects/again/versions", jsonRequest(`{"type":"integer"}`), 200, `{"id":1}`)
	both := `{"type":"object","properties":{"a":{"$ref":"a.json"},"b":{"$ref":"b.json"}}}`
	r.want("POST", "/subjects/two/versions", jsonRequest(both, "b.json", "money", 1, "a.json", "again", 1), 200, `{"id":2}`)
	// Normalized, the references stand by subject and version, each once.
	r.want("POST", "/subjects/three/versions?normalize=true",
		jsonRequest(both, "b.json", "money", 1, "a.json", "again", 1, "a.json", "again", 1), 200, `{"id":3}`)
	if got := must[sr.Schema](t)(r.sr.SchemaByID(t.Context(), 3)); len(got.References) != 2 || got.References[0].Name != "a.json" {
		t.Errorf("%+v", got)
	}
}

func TestReferencesStayWithinALanguage(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/avro/versions", request(`{"type":"record","name":"A","fields":[]}`), 200, `{"id":1}`)
	r.want("POST", "/subjects/json/versions", jsonRequest(`{"type":"string"}`), 200, `{"id":2}`)
	r.wantText("POST", "/subjects/x/versions", jsonRequest(`{"$ref":"a.json"}`, "a.json", "avro", 1), 422,
		`reference \"a.json\": it is of type AVRO; a schema of type JSON refers only to its own kind`)
	r.wantText("POST", "/subjects/x/versions", `{"schema":"\"int\"","references":[{"name":"A","subject":"json","version":1}]}`, 422, `it is of type JSON`)
	r.refused("POST", "/subjects/x/versions", jsonRequest(`{"$ref":"a.json"}`, "a.json", "json", 2), 422, 42201)
}

// A topic of Confluent's may hold JSON Schemas that no draft allows, and that
// refer to addresses.
func TestJSONSchemasOfAnotherRegistryAreFollowed(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	start(t, e, topic).stop() // declares the topic
	record := func(subject string, version, id int, text string) (string, string) {
		value, _ := json.Marshal(map[string]any{"subject": subject, "version": version, "id": id, "schemaType": "JSON", "schema": text, "deleted": false})
		return fmt.Sprintf(`{"keytype":"SCHEMA","subject":%q,"version":%d,"magic":1}`, subject, version), string(value)
	}
	var pairs []string
	for i, kept := range []struct{ subject, text string }{
		{"good", jsonNote},
		{"odd", `{"type":"object","properties":{"text":{"type":"string","required":true}},"additionalProperties":false}`},
		{"far", `{"type":"object","properties":{"text":{"$ref":"https://example.com/text.json"}},"additionalProperties":false}`},
		{"broken", `{"type":`},
		{"spaced", ` {"type" : "string"}`},
	} {
		key, value := record(kept.subject, 1, i+1, kept.text)
		pairs = append(pairs, key, value)
	}
	put(t, e, topic, pairs...)
	r := start(t, e, topic)
	r.want("GET", "/subjects", "", 200, `["broken","far","good","odd","spaced"]`)
	r.want("GET", "/schemas/ids/4", "", 200, `{"schemaType":"JSON","schema":"{\"type\":"}`)
	r.want("GET", "/schemas/ids/5/schema", "", 200, `{"type":"string"}`)
	wider := strings.Replace(jsonNote, `"properties":{`, `"properties":{"by":{"type":"string"},`, 1)
	r.want("POST", "/subjects/good/versions", jsonRequest(wider), 200, `{"id":6}`)
	r.want("POST", "/subjects/odd/versions", jsonRequest(wider), 200, `{"id":6}`)
	r.wantText("POST", "/subjects/odd/versions", jsonRequest(strings.ReplaceAll(wider, "string", "null")), 409, `#/properties/text`)
	r.wantText("POST", "/subjects/far/versions", jsonRequest(wider), 409, `#/properties/text`, `TYPE_CHANGED`) // it may be anything
	r.wantText("POST", "/subjects/broken/versions", jsonRequest(wider), 409, `delete that version`)
	r.want("DELETE", "/subjects/broken/versions/1", "", 200, `1`)
	r.want("POST", "/subjects/broken/versions", jsonRequest(wider), 200, `{"id":6}`)
	before := r.everything()
	r.stop()
	if after := start(t, e, topic).everything(); after != before {
		t.Errorf("after restart\n%s\nwant\n%s", after, before)
	}
}

// Many names for one schema, and ways to another that double with each between
// them: a test that ends says that neither is gone through one by one.
func TestHostileJSONReferencesCostLittle(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	large := `{"description":"` + strings.Repeat("x", 900_000) + `"}`
	r.want("POST", "/subjects/s0/versions", jsonRequest(large), 200, `{"id":1}`)
	var names []any
	for i := range 5000 {
		names = append(names, fmt.Sprintf("n%d", i), "s0", 1)
	}
	r.refused("POST", "/subjects/names/versions", jsonRequest(`{"$ref":"n1"}`, names...), 422, 42201)
	r.want("POST", "/subjects/d0/versions", jsonRequest(`{"type":"string"}`), 200, `{"id":2}`)
	for i := 1; i < 25; i++ { // each refers to the one before it under two names
		text := fmt.Sprintf(`{"anyOf":[{"$ref":"a%d"},{"$ref":"b%d"}]}`, i, i)
		before := fmt.Sprintf("d%d", i-1)
		body := jsonRequest(text, fmt.Sprintf("a%d", i), before, 1, fmt.Sprintf("b%d", i), before, 1)
		r.want("POST", fmt.Sprintf("/subjects/d%d/versions", i), body, 200, fmt.Sprintf(`{"id":%d}`, i+2))
	}
}
