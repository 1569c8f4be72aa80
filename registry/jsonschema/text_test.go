package jsonschema_test

import (
	"testing"

	"github.com/waybillhq/waybill/registry/jsonschema"
)

// The texts on the right are what Jackson writes.
func TestTextIsKeptAsJacksonWritesIt(t *testing.T) {
	for text, want := range map[string][2]string{
		" { \"b\" : [ 1 , 2.50 ] ,\n\"a\":null } ":    {`{"b":[1,2.50],"a":null}`, `{"a":null,"b":[1,2.50]}`},
		`{"b":{"d":1,"c":2},"a":[{"f":1,"e":true}]}`:  {`{"b":{"d":1,"c":2},"a":[{"f":1,"e":true}]}`, `{"a":[{"e":true,"f":1}],"b":{"c":2,"d":1}}`},
		`{"p":"\u00e9\/\u0041<&>\"\\\n\u0001\u2028"}`: {"{\"p\":\"é/A<&>\\\"\\\\\\n\\u0001\u2028\"}", "{\"p\":\"é/A<&>\\\"\\\\\\n\\u0001\u2028\"}"},
		`{"a":1,"b":2,"a":3}`:                         {`{"a":3,"b":2}`, `{"a":3,"b":2}`},
		`{}`:                                          {`{}`, `{}`},
		`true`:                                        {`true`, `true`},
	} {
		compact, err := jsonschema.Compact(text)
		if err != nil || compact != want[0] {
			t.Errorf("%s: %s, %v, want %s", text, compact, err, want[0])
		}
		normal, err := jsonschema.Normal(text)
		if err != nil || normal != want[1] {
			t.Errorf("%s: %s, %v, want %s", text, normal, err, want[1])
		}
	}
}
