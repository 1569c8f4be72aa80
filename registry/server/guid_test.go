package server_test

import (
	"crypto/md5"
	"encoding/json"
	"testing"

	"github.com/google/uuid"
)

// hashed is the GUID of the parts that Confluent hashes, one after the other.
func hashed(parts string) string {
	sum := md5.Sum([]byte(parts))
	return uuid.UUID(sum).String()
}

type answered struct {
	ID      int    `json:"id"`
	Version int    `json:"version"`
	GUID    string `json:"guid"`
	Schema  string `json:"schema"`
}

func (r *registry) told(method, path, body string) (out answered) {
	r.Helper()
	status, text := r.ask(method, path, body)
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 {
		r.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return out
}

// Serializers that put the GUID into a header take it from whichever of these
// they ask; deserializers find the schema by it.
func TestEveryAnswerWithASchemaHasItsGUID(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	want := answered{1, 1, hashed(`"string"`), `"string"`}
	if got := r.told("POST", "/subjects/one/versions", request(`{"type": "string"}`)); got.GUID != hashed(`{"type":"string"}`) {
		t.Errorf("the text as it is kept, without white space: %+v", got)
	}
	r.ask("DELETE", "/subjects/one", "")
	r.ask("DELETE", "/subjects/one?permanent=true", "")
	want.ID = 2
	for _, asked := range [][3]string{
		{"POST", "/subjects/one/versions", request(`"string"`)},
		{"POST", "/subjects/one/versions", request(`"string"`)},          // it is there
		{"POST", "/subjects/one/versions", request(`{"type":"string"}`)}, // and says the same: the GUID is of what is kept
		{"POST", "/subjects/one", request(`"string"`)},
		{"GET", "/subjects/one/versions/1", ""},
		{"GET", "/subjects/one/versions/latest", ""},
	} {
		if got := r.told(asked[0], asked[1], asked[2]); got != want {
			t.Errorf("%v: %+v, want %+v", asked, got, want)
		}
	}
	for _, path := range []string{"/schemas/ids/2", "/schemas/guids/" + want.GUID} {
		if got := r.told("GET", path, ""); got.GUID != want.GUID || got.Schema != want.Schema {
			t.Errorf("%s: %+v", path, got)
		}
	}
	_, list := r.ask("GET", "/schemas", "")
	var all []answered
	if err := json.Unmarshal([]byte(list), &all); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%s", list)
	}
}

// Metadata, rules and references are part of the name, in the order of
// Confluent's classes: one text with two rule sets is two schemas.
func TestAGUIDIsOfMetadataAndRulesToo(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.ask("PUT", "/config", `{"compatibility":"NONE"}`)
	body := func(more string) string { return `{"schema":"\"string\""` + more + `}` }
	const text, metadata, rules = `"string"`, `,"metadata":{"sensitive":["z","a"],"properties":{"b":"2","a":"1"},"tags":{"t":["y","x"]}}`,
		`,"ruleSet":{"domainRules":[{"name":"d","tags":["u","t"],"params":{"k":"v"},"type":"CEL","expr":"true","onFailure":"DLQ","disabled":true}],"migrationRules":[{"name":"m","mode":"UPGRADE"}]}`
	for more, parts := range map[string]string{
		``:               text,
		`,"metadata":{}`: text + "\x01",
		metadata:         text + "\x01txy" + "a1b2" + "az",
		`,"ruleSet":{}`:  text + "\x01",
		rules:            text + "\x01" + "mTRANSFORMUPGRADE" + "dTRANSFORMWRITEREADCELtukvtrueDLQ\x01",
		metadata + rules: text + "\x01txya1b2az" + "\x01" + "mTRANSFORMUPGRADE" + "dTRANSFORMWRITEREADCELtukvtrueDLQ\x01",
	} {
		if got := r.told("POST", "/subjects/"+uuid.NewString()+"/versions", body(more)); got.GUID != hashed(parts) {
			t.Errorf("%s: %s, want that of %q", more, got.GUID, parts)
		}
	}
	plain := r.told("GET", "/schemas/guids/"+hashed(text), "")
	if _, there := r.ask("GET", "/schemas/guids/"+hashed(text), ""); plain.Schema != text || len(there) == 0 {
		t.Errorf("%+v", plain)
	}
	r.ask("POST", "/subjects/base/versions", request(textA))
	using := `{"schema":` + quote(textU) + `,"references":[{"name":"A","subject":"base","version":1}]}`
	if got := r.told("POST", "/subjects/user/versions", using); got.GUID != hashed(textU+"Abase\x00\x00\x00\x01") {
		t.Errorf("references: %+v", got)
	}
}
