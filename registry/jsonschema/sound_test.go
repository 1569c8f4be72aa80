package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	lib "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/jsonschema"
)

// A schema that passes backward must really take what was written before. Drawn
// are schemas that name their types and ask for nothing that is not compared.
func TestPassingBackwardMeansOldDataIsTaken(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		earlier := drawSchema(t, 2)
		later := drawEdits(t, earlier)
		e, err := jsonschema.Parse(earlier, nil, false)
		if err != nil {
			t.Fatalf("%s: %v", earlier, err)
		}
		l, err := jsonschema.Parse(later, nil, false)
		if err != nil {
			return // an edit made it none
		}
		if len(jsonschema.Check(compat.Backward, l, []jsonschema.Version{{Number: 1, Schema: e}})) > 0 {
			return
		}
		old, now := validator(t, earlier), validator(t, later)
		for range 5 {
			v := drawValue(t, 2)
			if old.Validate(v) != nil {
				continue
			}
			passed++
			if err := now.Validate(v); err != nil {
				t.Fatalf("%s\npassed after\n%s\nand refuses %v: %v", later, earlier, v, err)
			}
		}
	})
	if passed == 0 {
		t.Error("no value was looked at")
	}
}

func validator(t *rapid.T, text string) *lib.Schema {
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	c := lib.NewCompiler()
	c.DefaultDraft(lib.Draft7)
	if err := c.AddResource("mem:///x", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///x")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drawEdits changes a schema in a few places, as people do.
func drawEdits(t *rapid.T, text string) string {
	edits := [][2]string{
		{`"integer"`, `"number"`},
		{`"number"`, `"integer"`},
		{`{"type":"string"}`, `{"type":"number"}`},
		{`"type":"string"`, `"type":["null","string"]`},
		{`["null",`, `["boolean",`},
		{`:false`, `:true`},
		{`:true`, `:false`},
		{`:{"type":"integer"}`, `:{}`},
		{`:1`, `:2`},
		{`:2`, `:1`},
		{`,1`, `,0`},
		{`anyOf`, `allOf`},
		{`allOf`, `anyOf`},
		{`"a"`, `"d"`},
		{`["a"`, `["b"`},
		{`,"required":["a"]`, ``},
		{`{"type":"null"}`, `{}`},
		{`{}`, `{"type":"null"}`},
		{`{"type":"boolean"}`, `{"anyOf":[{"type":"boolean"},{"type":"string"}]}`},
		{`maximum`, `minimum`},
		{`"properties":{`, `"properties":{"z":{},`},
		{`"properties":{`, `"properties":{"y":{"type":"string"},`},
		{`[{`, `[{"type":"string"},{`},
		{`"items":[`, `"minItems":1,"items":[`},
		{`,"maxLength":3`, ``},
		{`"additionalProperties":false`, `"additionalProperties":{"type":"number"}`},
	}
	for range rapid.IntRange(1, 3).Draw(t, "edits") {
		edit := rapid.SampledFrom(edits).Draw(t, "edit")
		if n := strings.Count(text, edit[0]); n > 0 {
			at := 0
			for range rapid.IntRange(0, n-1).Draw(t, "place") {
				at += strings.Index(text[at:], edit[0]) + 1
			}
			text = text[:at] + strings.Replace(text[at:], edit[0], edit[1], 1)
		}
	}
	return text
}

func drawSchema(t *rapid.T, depth int) string {
	small := rapid.IntRange(0, 3)
	kinds := []string{"string", "integer", "number", "boolean", "null", "two", "enum", "anything"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "array", "tuple", "anyOf", "allOf", "not")
	}
	some := func() string { return drawSchema(t, depth-1) }
	optional := func(format string) string {
		if rapid.Bool().Draw(t, "with") {
			return fmt.Sprintf(format, small.Draw(t, "bound"))
		}
		return ""
	}
	switch k := rapid.SampledFrom(kinds).Draw(t, "kind"); k {
	case "string":
		return `{"type":"string"` + optional(`,"maxLength":%d`) + optional(`,"minLength":%d`) + `}`
	case "integer", "number":
		return `{"type":"` + k + `"` + optional(`,"maximum":%d`) + optional(`,"exclusiveMinimum":%d`) + optional(`,"multipleOf":0.%d5`) + `}`
	case "two":
		return `{"type":["null","` + rapid.SampledFrom([]string{"integer", "number", "string"}).Draw(t, "type") + `"]}`
	case "enum":
		return `{"enum":[null,` + fmt.Sprint(small.Draw(t, "value")) + `]}`
	case "anything":
		return `{}`
	case "object":
		return drawObject(t, some) + optional(`,"maxProperties":%d`) + `}`
	case "array":
		return `{"type":"array","items":` + some() + optional(`,"maxItems":%d`) + `}`
	case "tuple":
		rest := rapid.SampledFrom([]string{`false`, `true`, `{"type":"integer"}`}).Draw(t, "rest")
		return `{"type":"array","items":[` + strings.Join(draws(t, some, 1, 3), ",") + `],"additionalItems":` + rest + `}`
	case "anyOf", "allOf":
		return `{"` + k + `":[` + strings.Join(draws(t, some, 1, 3), ",") + `]}`
	case "not":
		return `{"not":` + some() + `}`
	default:
		return `{"type":"` + k + `"}`
	}
}

func draws(t *rapid.T, some func() string, least, most int) []string {
	out := make([]string, rapid.IntRange(least, most).Draw(t, "count"))
	for i := range out {
		out[i] = some()
	}
	return out
}

// drawObject leaves the object's last brace to the caller. Only declared
// properties are required: others are not compared.
func drawObject(t *rapid.T, some func() string) string {
	var properties, required []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "names") {
		properties = append(properties, `"`+name+`":`+some())
		if rapid.Bool().Draw(t, "required") {
			required = append(required, `"`+name+`"`)
		}
	}
	out := `{"type":"object","properties":{` + strings.Join(properties, ",") + `}`
	if len(required) > 0 {
		out += `,"required":[` + strings.Join(required, ",") + `]`
	}
	return out + rapid.SampledFrom([]string{``, `,"additionalProperties":false`, `,"additionalProperties":{"type":"integer"}`}).Draw(t, "rest")
}

func drawValue(t *rapid.T, depth int) any {
	kinds := []string{"string", "number", "bool", "null"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "list")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "value") {
	case "string":
		return rapid.SampledFrom([]string{"", "x", "xx", "xxx"}).Draw(t, "text")
	case "number":
		return rapid.SampledFrom([]float64{-1, 0, 0.5, 1, 2.5, 3, 4}).Draw(t, "number")
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "object":
		out := map[string]any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID[string]).Draw(t, "names") {
			out[name] = drawValue(t, depth-1)
		}
		return out
	case "list":
		out := make([]any, rapid.IntRange(0, 3).Draw(t, "count"))
		for i := range out {
			out[i] = drawValue(t, depth-1)
		}
		return slices.Clip(out)
	}
	return nil
}
