package jsonschema_test

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/jsonschema"
)

func TestReferencesResolveByTheirName(t *testing.T) {
	str, num := `{"type":"string"}`, `{"type":"number"}`
	for name, c := range map[string]struct {
		text string
		refs []jsonschema.Text
	}{
		"a file's name":                  {`{"$ref":"s.json"}`, []jsonschema.Text{{"s.json", str}}},
		"a name with a dot before it":    {`{"$ref":"./s.json"}`, []jsonschema.Text{{"s.json", str}}},
		"a class":                        {`{"$ref":"com.example.S"}`, []jsonschema.Text{{"com.example.S", str}}},
		"an address":                     {`{"$ref":"https://example.com/s.json"}`, []jsonschema.Text{{"https://example.com/s.json", str}}},
		"a urn":                          {`{"$ref":"urn:example:s"}`, []jsonschema.Text{{"urn:example:s", str}}},
		"beside the schema's own $id":    {`{"$id":"https://example.com/a/b.json","$ref":"s.json"}`, []jsonschema.Text{{"s.json", str}}},
		"the $id of what is referred to": {`{"$ref":"https://example.com/s.json"}`, []jsonschema.Text{{"s", `{"$id":"https://example.com/s.json","type":"string"}`}}},
		"a place within":                 {`{"$ref":"s.json#/definitions/x"}`, []jsonschema.Text{{"s.json", `{"definitions":{"x":{"type":"string"}}}`}}},
		"a place under its other name":   {`{"$ref":"s.json#/$defs/x"}`, []jsonschema.Text{{"s.json", `{"definitions":{"x":{"type":"string"}}}`}}},
		"an anchor within":               {`{"$ref":"s.json#x"}`, []jsonschema.Text{{"s.json", `{"definitions":{"y":{"$id":"#x","type":"string"}}}`}}},
		"a reference that refers on":     {`{"$ref":"r.json"}`, []jsonschema.Text{{"s.json", str}, {"r.json", `{"$ref":"s.json"}`}}},
		"the first of two of one name":   {`{"$ref":"s.json"}`, []jsonschema.Text{{"s.json", str}, {"s.json", num}}},
		"one text under two names":       {`{"anyOf":[{"$ref":"s.json"},{"$ref":"t.json"}]}`, []jsonschema.Text{{"s.json", str}, {"t.json", str}}},
		"a draft's own schema is at hand": {
			`{"properties":{"s":{"$ref":"http://json-schema.org/draft-07/schema#"}},"$ref":"s.json"}`,
			[]jsonschema.Text{{"s.json", str}},
		},
	} {
		s, err := jsonschema.Parse(c.text, c.refs, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := jsonschema.Check(compat.Backward, s, []jsonschema.Version{{Number: 1, Schema: parse(t, str)}}); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		if got := jsonschema.Check(compat.Backward, s, []jsonschema.Version{{Number: 1, Schema: parse(t, num)}}); len(got) == 0 {
			t.Errorf("%s: it takes numbers", name)
		}
	}
}

func TestWhatIsNoSchemaIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		``:                                "ends too early",
		`{"type":"string"`:                "ends too early",
		`{"type":"string"} x`:             "not JSON",
		`"string"`:                        "object, or true or false",
		`[]`:                              "object, or true or false",
		`{"type":"text"}`:                 `"#/type"`,
		`{"properties":{"a":{"type":7}}}`: `"#/properties/a/type"`,
		`{"maxLength":-1}`:                `"#/maxLength"`,
		`{"required":"a"}`:                `"#/required"`,
		`{"pattern":"("}`:                 "#/pattern",
		`{"enum":[]}`:                     `"#/enum"`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMaximum":3}`: `"#/exclusiveMaximum"`,
		`{"$ref":"#/definitions/absent"}`:                                            "no such place",
		`{"$ref":"absent.json"}`:                                                     `$ref "absent.json" leads nowhere: nothing is fetched`,
		`{"$ref":"https://example.com/absent.json"}`:                                 "nothing is fetched",
		`{"$ref":"file:///etc/passwd"}`:                                              "nothing is fetched",
		`{"$ref":"/etc/passwd"}`:                                                     "nothing is fetched",
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$ref":"#x"}`:     "#x",
		`{"maximum":1e999999}`:                                                       "too long",
		`{"maximum":` + strings.Repeat("1", 200) + `}`:                               "too long",
		strings.Repeat(`{"not":`, 300) + `{}` + strings.Repeat(`}`, 300):             "deeper",
		`{"enum":[` + strings.Repeat(`[],`, 10_000) + `1]}`:                          "more than",
	} {
		if _, err := jsonschema.Parse(text, nil, false); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%.100s: %v, want %s", text, err, want)
		}
	}
}

func TestReferencesArePartOfTheBounds(t *testing.T) {
	large := `{"description":"` + strings.Repeat("x", 1<<20) + `"}`
	var refs []jsonschema.Text
	for i := range 20 {
		refs = append(refs, jsonschema.Text{Name: strings.Repeat("n", i+1), Text: large})
	}
	if _, err := jsonschema.Parse(`{}`, refs, true); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("twenty megabytes: %v", err)
	}
	if _, err := jsonschema.Parse(`{}`, []jsonschema.Text{{"x", `{`}}, true); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("a reference that is no JSON: %v", err)
	}
}

// What a laxer registry took is compared with as far as it is understood.
func TestKeptSchemaLosesOnlyWhatNoDraftAllows(t *testing.T) {
	str := obj(propA)
	for name, text := range map[string]string{
		"nothing required, draft 4": `{"$schema":"http://json-schema.org/draft-04/schema#","required":[],"type":"object","properties":{` + propA + `}}`,
		"a required flag":           `{"type":"object","properties":{"a":{"type":"string","required":true}}}`,
		"a value twice":             `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","a"]}`,
		"a value of an enum twice":  obj(propA + `,"e":{"enum":["x","x"]}`),
		"a type twice":              obj(propA + `,"l":{"type":"array","items":[{"type":["null","null"]}]}`),
		"a title of a number":       obj(propA, `"title":7`),
		"a reference to the net":    obj(propA + `,"z":{"$ref":"https://example.com/z.json"}`),
		"in a place apart":          obj(`"a":{"$ref":"#/components/a"}`, `"components":{"a":{"type":"string","title":7}}`),
	} {
		if _, err := jsonschema.Parse(text, nil, false); err == nil {
			t.Errorf("%s: taken as new", name)
		}
		s, err := jsonschema.Parse(text, nil, true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		earlier := []jsonschema.Version{{Number: 1, Schema: s}}
		if got := jsonschema.Check(compat.Backward, parse(t, str), earlier); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
		if got := jsonschema.Check(compat.Backward, parse(t, obj(`"a":{"type":"integer"}`)), earlier); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := jsonschema.Parse(`{"$ref":"#/definitions/absent"}`, nil, true); err == nil {
		t.Error("a place that is not there was found")
	}
}

func TestReasonNamesPlaceVersionAndMend(t *testing.T) {
	earlier := []jsonschema.Version{{Number: 7, Schema: parse(t, obj(`"in":`+obj(propA, closed), closed))}}
	later := parse(t, obj(`"in":`+obj(propA+","+propB, closed, `"required":["b"]`), closed))
	got := jsonschema.Check(compat.Full, later, earlier)
	if len(got) != 2 {
		t.Fatal(got)
	}
	for i, want := range []string{
		`at "#/properties/in/properties/b", the new schema cannot read data of version 7: the new schema requires the property without a default, and version 7 may leave it out (REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL); to mend, give the property a default, or do not require it`,
		`at "#/properties/in/properties/b", programs at version 7 cannot read data of the new schema: version 7 is closed to other properties, and the new schema has this one (PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL); to mend, leave the property out, since version 7 takes no others`,
	} {
		if got[i].String() != want {
			t.Errorf("%s\nwant %s", got[i], want)
		}
	}
}

func TestOnlyTransitiveLevelsLookBeyondTheLatest(t *testing.T) {
	versions := []jsonschema.Version{{Number: 1, Schema: parse(t, `{"type":"string","maxLength":5}`)}, {Number: 2, Schema: parse(t, `{"type":"string","maxLength":3}`)}}
	later := parse(t, `{"type":"string","maxLength":4}`)
	if got := jsonschema.Check(compat.Backward, later, versions); len(got) != 0 {
		t.Errorf("BACKWARD: %v", got)
	}
	if got := jsonschema.Check(compat.BackwardTransitive, later, versions); len(got) != 1 || got[0].Version != 1 {
		t.Errorf("BACKWARD_TRANSITIVE: %v", got)
	}
}
