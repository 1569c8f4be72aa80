package jsonschema_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/jsonschema"
)

// patience is far more than any text of these tests may cost, on a machine that
// others use as well: it finds what does not end.
const patience = 2 * time.Minute

func quick(t *testing.T, began time.Time) {
	t.Helper()
	if took := time.Since(began); took > patience {
		t.Fatalf("it took %s", took)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range rules() {
		f.Add(c.earlier, c.later)
	}
	for _, text := range []string{
		``, `{`, `[]`, `{"$ref":"r.json"}`, `{"$id":"http://[::1","$ref":"%zz"}`, `{"$schema":7,"$id":"urn:x:y","$anchor":"a","$ref":"#a"}`,
		`{"definitions":{"a/b~%":{"$ref":"#/$defs/a~1b~0%25"}},"$ref":"#/$defs/a~1b~0%25"}`, `{"allOf":[{"$ref":"#"}]}`, `{"not":{"$ref":"#"}}`,
		`{"minimum":1e400,"maximum":-0.0E-400,"multipleOf":0}`, `{"$dynamicRef":"#x","items":[{"$ref":"#/items/0"}]}`, `{"a":1,"a":{},"` + "\xff" + `":"\ud800"}`,
	} {
		f.Add(text, `{"type":"object","properties":{"a":{"$ref":"#"}}}`)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		defer quick(t, time.Now())
		for _, text := range []string{a, b} {
			again(t, text, jsonschema.Compact)
			again(t, text, jsonschema.Normal)
		}
		refs := []jsonschema.Text{{Name: "r.json", Text: b}}
		for _, kept := range []bool{false, true} {
			x, err := jsonschema.Parse(a, refs, kept)
			if err != nil {
				continue
			}
			// The order of members is nothing to the rules, and a schema follows
			// itself wherever the comparison is not cut short.
			normal, err := x.Normal()
			if err != nil {
				t.Fatalf("no normal form of %s: %v", a, err)
			}
			n, err := jsonschema.Parse(normal, refs, kept)
			if err != nil {
				t.Fatalf("normal form %s of %s: %v", normal, a, err)
			}
			for _, r := range jsonschema.Check(compat.Full, n, []jsonschema.Version{{Number: 1, Schema: x}}) {
				if r.Kind != jsonschema.TooLargeToCompare {
					t.Errorf("%s does not follow itself: %s", a, r)
				}
			}
			if y, err := jsonschema.Parse(b, refs, kept); err == nil {
				for _, r := range jsonschema.Check(compat.FullTransitive, y, []jsonschema.Version{{Number: 1, Schema: x}}) {
					if said := r.String(); !strings.Contains(said, "version 1") || strings.Contains(said, "keep this part as it was") {
						t.Errorf("it does not help: %s", said)
					}
				}
			}
		}
	})
}

// again wants a text that was written to be written the same.
func again(t *testing.T, text string, write func(string) (string, error)) {
	t.Helper()
	once, err := write(text)
	if err != nil {
		return
	}
	if !json.Valid([]byte(text)) {
		t.Errorf("%q is no JSON and became %q", text, once)
	}
	if twice, err := write(once); err != nil || twice != once {
		t.Errorf("%q became %q, then %q, %v", text, once, twice, err)
	}
}
