package jsonschema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/jsonschema"
)

// A text may ask for much work: what is not refused must end soon.
func TestHostileSchemasCostLittle(t *testing.T) {
	many := func(n int, format, between string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, between)
	}
	var circles, chain []string
	for i := range 300 {
		next := (i*7 + 1) % 300
		circles = append(circles, fmt.Sprintf(`"d%d":{"anyOf":[{"type":"object","properties":{"a":{"$ref":"#/definitions/d%d"},"b":{"$ref":"#"}}},{"$ref":"#/definitions/d%d"}]}`, i, next, (next+150)%1000))
	}
	for i := range 1200 {
		chain = append(chain, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/definitions/d%d"},{"type":"string"}]}`, i, i+1))
	}
	for name, text := range map[string]string{
		"deep":                         strings.Repeat(`{"not":`, 190) + `{}` + strings.Repeat(`}`, 190),
		"lists":                        strings.Repeat("[", 400_000),
		"many alternatives":            `{"anyOf":[` + many(1200, `{"type":"string","maxLength":%d}`, ",") + `]}`,
		"alternatives that differ":     `{"oneOf":[` + many(400, `{"type":"object","required":["r%[1]d"],"properties":{"p%[1]d":{"const":%[1]d}}}`, ",") + `]}`,
		"alternatives in circles":      `{"definitions":{` + many(25, `"d%d":{"anyOf":[`+many(25, `{"$ref":"#/definitions/d%d"}`, ",")+`]}`, ",") + `},"$ref":"#/definitions/d0"}`,
		"circles everywhere":           `{"definitions":{` + strings.Join(circles, ",") + `},"properties":{"x":{"$ref":"#/definitions/d1"}}}`,
		"a chain of references":        `{"definitions":{"d1200":{},` + strings.Join(chain, ",") + `},"$ref":"#/definitions/d0"}`,
		"places of no draft":           `{"properties":{` + many(300, `"p%[1]d":{"$ref":"#/x/%[1]d"}`, ",") + `},"x":[` + many(300, `{"maxLength":%d}`, ",") + `]}`,
		"names for every place":        `{"definitions":{` + many(1000, `"d%[1]d":{"$id":"http://x/%[1]d"}`, ",") + `}}`,
		"places of no draft, too many": `{"properties":{` + many(3000, `"p%[1]d":{"$ref":"#/x/%[1]d"}`, ",") + `},"x":[` + many(3000, `{"maxLength":%d}`, ",") + `]}`,
		"numbers, too many":            `{"enum":[` + many(10_000, `%de400`, ",") + `]}`,
		"values":                       `{"enum":[` + many(15_000, `"%d"`, ",") + `]}`,
		"required":                     `{"required":[` + many(15_000, `"%d"`, ",") + `]}`,
		"numbers":                      `{"enum":[` + many(2_000, `%de400`, ",") + `]}`,
		"patterns":                     `{"patternProperties":{` + many(200, `"(a*)*b{1000}%[1]d":{}`, ",") + `},"properties":{` + many(200, `"a%d":{}`, ",") + `},"additionalProperties":{"type":"string"}}`,
		"properties":                   `{"properties":{` + many(2000, `"p%d":{"type":"string"}`, ",") + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			s, err := jsonschema.Parse(text, nil, true)
			parsed := time.Since(began)
			if err == nil {
				other, _ := jsonschema.Parse(strings.ReplaceAll(text, "1", "2"), nil, true)
				for _, later := range []*jsonschema.Schema{s, other} {
					if later != nil {
						jsonschema.Check(compat.Full, later, []jsonschema.Version{{Number: 1, Schema: s}})
					}
				}
			}
			t.Logf("read in %s, all in %s, %v", parsed, time.Since(began), err)
			if took := time.Since(began); took > patience {
				t.Errorf("it took %s", took)
			}
		})
	}
}
