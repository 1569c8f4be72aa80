package server_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestEveryEndpointAnswersAsConfluentDoes(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("GET", "/", "", 200, `{}`)
	r.want("GET", "/subjects", "", 200, `[]`)
	r.want("GET", "/schemas/types", "", 200, `["AVRO","JSON","PROTOBUF"]`)
	r.want("GET", "/config", "", 200, `{"compatibilityLevel":"BACKWARD"}`)
	r.want("GET", "/mode", "", 200, `{"mode":"READWRITE"}`)
	r.want("PUT", "/mode", `{"mode":"READWRITE"}`, 200, `{"mode":"READWRITE"}`)
	r.want("GET", "/mode/x?defaultToGlobal=true", "", 200, `{"mode":"READWRITE"}`)

	r.want("POST", "/subjects/one/versions", schema(fieldA), 200, `{"id":1}`)
	r.want("POST", "/subjects/one/versions", schema(fieldA), 200, `{"id":1}`)
	r.want("POST", "/subjects/two/versions", schema(fieldA), 200, `{"id":1}`)
	r.want("POST", "/subjects/one/versions", schema(fieldA+","+fieldB), 200, `{"id":2}`)
	r.want("GET", "/subjects", "", 200, `["one","two"]`)
	r.want("GET", "/subjects/", "", 200, `["one","two"]`)
	r.want("GET", "/subjects?subjectPrefix=t", "", 200, `["two"]`)
	r.want("GET", "/subjects?offset=1&limit=5", "", 200, `["two"]`)
	r.want("GET", "/subjects?limit=1", "", 200, `["one"]`)
	r.want("GET", "/subjects/one/versions", "", 200, `[1,2]`)
	text := `{"type":"record","name":"Account","namespace":"bank","fields":[` + fieldA + `]}`
	first := `{"subject":"one","version":1,"id":1,"schema":` + quote(text) + `}`
	r.want("GET", "/subjects/one/versions/1", "", 200, first)
	r.want("POST", "/subjects/one", schema(fieldA), 200, first)
	r.want("GET", "/subjects/one/versions/1/schema", "", 200, text)
	r.want("GET", "/subjects/one/versions/1/referencedby", "", 200, `[]`)
	if _, got := r.ask("GET", "/subjects/one/versions/latest", ""); !strings.Contains(got, `"version":2`) {
		t.Errorf("latest: %s", got)
	}
	r.want("GET", "/schemas/ids/1", "", 200, `{"schema":`+quote(text)+`}`)
	r.want("GET", "/schemas/ids/1?fetchMaxId=true", "", 200, `{"maxId":2,"schema":`+quote(text)+`}`)
	r.want("GET", "/schemas/ids/1/schema", "", 200, text)
	r.want("GET", "/schemas/ids/1/subjects", "", 200, `["one","two"]`)
	r.want("GET", "/schemas/ids/1/versions", "", 200, `[{"subject":"one","version":1},{"subject":"two","version":1}]`)
	r.want("GET", "/schemas/ids/1/versions?subject=two", "", 200, `[{"subject":"two","version":1}]`)
	r.want("GET", "/schemas?subjectPrefix=two", "", 200, `[{"subject":"two","version":1,"id":1,"schema":`+quote(text)+`}]`)
}

func TestLevels(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("PUT", "/config", `{"compatibility":"full"}`, 200, `{"compatibility":"FULL"}`)
	r.want("GET", "/config", "", 200, `{"compatibilityLevel":"FULL"}`)
	r.refused("GET", "/config/one", "", 404, 40408)
	r.want("GET", "/config/one?defaultToGlobal=true", "", 200, `{"compatibilityLevel":"FULL"}`)
	r.want("PUT", "/config/one", `{"compatibility":"NONE","later":{}}`, 200, `{"compatibility":"NONE"}`)
	r.want("PUT", "/config/one", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.want("GET", "/config/one", "", 200, `{"compatibilityLevel":"NONE"}`)
	r.want("GET", "/subjects?deleted=true", "", 200, `[]`)
	r.want("DELETE", "/config/one", "", 200, `{"compatibilityLevel":"NONE"}`)
	r.refused("DELETE", "/config/one", "", 404, 40401)
	r.want("PUT", "/config/one", `{"normalize":true}`, 200, `{"normalize":true}`)
	r.want("GET", "/config/one", "", 200, `{"normalize":true}`)
	r.want("GET", "/config/one?defaultToGlobal=true", "", 200, `{"compatibilityLevel":"FULL","normalize":true}`)
	r.want("POST", "/subjects/one/versions", request(`{"name":"x.E","symbols":["A"],"type":"enum"}`), 200, `{"id":1}`)
	r.want("GET", "/schemas/ids/1/schema", "", 200, `{"type":"enum","name":"E","namespace":"x","symbols":["A"]}`)
	r.want("DELETE", "/config", "", 200, `{"compatibilityLevel":"FULL"}`)
	r.want("GET", "/config", "", 200, `{"compatibilityLevel":"BACKWARD"}`)
}

func TestIncompatibleSchemaIsRefusedWithFieldVersionAndMend(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.ask("POST", "/subjects/one/versions", schema(fieldA))
	r.refused("POST", "/subjects/one/versions", schema(fieldA+","+fieldC), 409, 409)
	_, got := r.ask("POST", "/subjects/one/versions", schema(fieldA+","+fieldC))
	for _, want := range []string{"one", "version 1", `field \"c\"`, "default", "BACKWARD"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	r.want("POST", "/compatibility/subjects/one/versions/latest", schema(fieldA+","+fieldC), 200, `{"is_compatible":false}`)
	r.want("POST", "/compatibility/subjects/one/versions/1", schema(fieldA+","+fieldB), 200, `{"is_compatible":true}`)
	r.want("POST", "/compatibility/subjects/one/versions", schema(fieldA), 200, `{"is_compatible":true}`)
	r.want("POST", "/compatibility/subjects/new/versions", schema(fieldA), 200, `{"is_compatible":true}`)
	r.want("POST", "/compatibility/subjects/new/versions/latest", schema(fieldA), 200, `{"is_compatible":true}`)
	r.refused("POST", "/compatibility/subjects/new/versions/1", schema(fieldA), 404, 40402)
	r.refused("POST", "/compatibility/subjects/one/versions/9", schema(fieldA), 404, 40402)
	if _, got := r.ask("POST", "/compatibility/subjects/one/versions?verbose=true", schema(fieldA+","+fieldC)); !strings.Contains(got, `"messages":["at field`) {
		t.Errorf("verbose: %s", got)
	}
	r.want("PUT", "/config/one", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.want("POST", "/subjects/one/versions", request(`"string"`), 200, `{"id":2}`)
}

func TestDeletionIsSoftThenPermanent(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	for _, f := range []string{fieldA, fieldA + "," + fieldB} {
		r.ask("POST", "/subjects/one/versions", schema(f))
	}
	r.refused("DELETE", "/subjects/one/versions/1?permanent=true", "", 404, 40407)
	r.want("DELETE", "/subjects/one/versions/1", "", 200, `1`)
	r.refused("DELETE", "/subjects/one/versions/1", "", 404, 40406)
	r.want("GET", "/subjects/one/versions", "", 200, `[2]`)
	r.want("GET", "/subjects/one/versions?deleted=true", "", 200, `[1,2]`)
	r.want("GET", "/subjects/one/versions?deletedOnly=true", "", 200, `[1]`)
	r.refused("GET", "/subjects/one/versions/1", "", 404, 40402)
	if code, _ := r.ask("GET", "/subjects/one/versions/1?deleted=true", ""); code != 200 {
		t.Errorf("deleted version: %d", code)
	}
	if code, _ := r.ask("GET", "/schemas/ids/1", ""); code != 200 {
		t.Errorf("id of a deleted version: %d", code)
	}
	r.want("DELETE", "/subjects/one/versions/1?permanent=true", "", 200, `1`)
	r.refused("GET", "/schemas/ids/1", "", 404, 40403)

	r.refused("DELETE", "/subjects/one?permanent=true", "", 404, 40405)
	r.want("PUT", "/config/one", `{"compatibility":"FULL"}`, 200, `{"compatibility":"FULL"}`)
	r.want("DELETE", "/subjects/one", "", 200, `[2]`)
	r.want("GET", "/config/one", "", 200, `{"compatibilityLevel":"FULL"}`)
	r.refused("DELETE", "/subjects/one", "", 404, 40404)
	r.want("GET", "/subjects", "", 200, `[]`)
	r.want("GET", "/subjects?deleted=true", "", 200, `["one"]`)
	r.want("GET", "/subjects?deletedOnly=true", "", 200, `["one"]`)
	r.want("DELETE", "/subjects/one?permanent=true", "", 200, `[2]`)
	r.refused("GET", "/config/one", "", 404, 40408)
	r.refused("DELETE", "/subjects/one", "", 404, 40401)
	r.want("GET", "/subjects?deleted=true", "", 200, `[]`)
	// An id is never given twice, not even when its schema is gone.
	r.want("POST", "/subjects/one/versions", schema(fieldC), 200, `{"id":3}`)
}

func TestDeletedSchemaCanBeRegisteredAgainUnderItsId(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.ask("POST", "/subjects/one/versions", schema(fieldA))
	r.ask("DELETE", "/subjects/one", "")
	r.want("POST", "/subjects/one/versions", schema(fieldA), 200, `{"id":1}`)
	r.want("GET", "/subjects/one/versions", "", 200, `[2]`)
}

func TestTextsOfOneMeaningAreOneVersion(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/one/versions", schema(fieldA), 200, `{"id":1}`)
	for _, same := range []string{
		`{ "type": "record", "name": "Account", "namespace": "bank", "fields": [ {"name": "a", "type": "string"} ] }`,
		`{"name":"bank.Account","fields":[{"type":"string","name":"a"}],"type":"record"}`,
		`{"type":"record","name":"Account","namespace":"bank","fields":[{"name":"a","type":{"type":"string"}}]}`,
	} {
		r.want("POST", "/subjects/one/versions", request(same), 200, `{"id":1}`)
		if code, got := r.ask("POST", "/subjects/one?normalize=true", request(same)); code != 200 {
			t.Errorf("lookup: %s", got)
		}
	}
	for _, other := range []string{
		`{"type":"record","name":"Account","namespace":"bank","doc":"x","fields":[{"name":"a","type":"string"}]}`,
		`{"type":"record","name":"Account","namespace":"bank","fields":[{"name":"a","type":"string","default":""}]}`,
	} {
		r.refused("POST", "/subjects/one", request(other), 404, 40403)
	}
}

func TestReferencesResolve(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/money/versions", request(`{"type":"record","name":"Money","namespace":"bank","fields":[{"name":"n","type":"long"}]}`), 200, `{"id":1}`)
	using := `{"schema":"{\"type\":\"record\",\"name\":\"A\",\"namespace\":\"bank\",\"fields\":[{\"name\":\"m\",\"type\":\"Money\"}]}","references":[{"name":"bank.Money","subject":"money","version":1}]}`
	r.want("POST", "/subjects/a/versions", using, 200, `{"id":2}`)
	r.want("POST", "/subjects/a/versions", using, 200, `{"id":2}`)
	r.want("GET", "/subjects/money/versions/1/referencedby", "", 200, `[2]`)
	r.refused("DELETE", "/subjects/money", "", 422, 42206)
	r.refused("POST", "/subjects/a/versions", strings.Replace(using, `"version":1`, `"version":2`, 1), 422, 42201)
	r.want("POST", "/compatibility/subjects/a/versions?verbose=true", using, 200, `{"is_compatible":true}`)
	if _, got := r.ask("GET", "/schemas/ids/2", ""); !strings.Contains(got, `"references":[{"name":"bank.Money"`) {
		t.Errorf("references: %s", got)
	}
}

func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.ask("POST", "/subjects/one/versions", schema(fieldA))
	bad := []struct {
		method, path, body string
		status, code       int
	}{
		{"GET", "/nothing", "", 404, 404},
		{"PATCH", "/subjects", "", 405, 405},
		{"PUT", "/subjects/one/versions", schema(fieldA), 405, 405},
		{"GET", "/subjects?offset=x", "", 400, 400},
		{"GET", "/subjects/none/versions", "", 404, 40401},
		{"GET", "/subjects/none/versions/1", "", 404, 40401},
		{"GET", "/subjects/one/versions/7", "", 404, 40402},
		{"GET", "/subjects/one/versions/0", "", 422, 42202},
		{"GET", "/subjects/one/versions/-2", "", 422, 42202},
		{"GET", "/subjects/one/versions/x", "", 422, 42202},
		{"GET", "/subjects/one/versions/99999999999", "", 422, 42202},
		{"DELETE", "/subjects/one/versions/x", "", 422, 42202},
		{"DELETE", "/subjects/none/versions/1", "", 404, 40401},
		{"DELETE", "/subjects/one/versions/7", "", 404, 40402},
		{"DELETE", "/subjects/none", "", 404, 40401},
		{"GET", "/schemas/ids/99", "", 404, 40403},
		{"GET", "/schemas/ids/x", "", 404, 40403},
		{"GET", "/schemas/ids/99/versions", "", 404, 40403},
		{"GET", "/schemas/ids/-1/subjects", "", 404, 40403},
		{"GET", "/mode/one", "", 404, 40409},
		{"PUT", "/mode", `{"mode":"IMPORT"}`, 422, 42205},
		{"PUT", "/mode", `{"mode":"SIDEWAYS"}`, 422, 42204},
		{"PUT", "/mode", `{}`, 422, 42204},
		{"DELETE", "/mode/one", "", 404, 40401},
		{"GET", "/schemas/guids/x", "", 404, 40403},
		{"DELETE", "/contexts/.x", "", 422, 42205},
		{"PUT", "/config", `{"compatibility":"SIDEWAYS"}`, 422, 42203},
		{"PUT", "/config/one", `{}`, 422, 42203},
		{"PUT", "/config/one", `[]`, 400, 400},
		{"POST", "/subjects/none", schema(fieldA), 404, 40401},
		{"POST", "/subjects/one", schema(fieldC), 404, 40403},
		{"POST", "/subjects/one/versions", ``, 400, 400},
		{"POST", "/subjects/one/versions", `{"schema":`, 400, 400},
		{"POST", "/subjects/one/versions", `{"schema":7}`, 400, 400},
		{"POST", "/subjects/one/versions", `{}`, 422, 42201},
		{"POST", "/subjects/one/versions", request(`{"type":"record"}`), 422, 42201},
		{"POST", "/subjects/one/versions", request(`not json`), 422, 42201},
		{"POST", "/subjects/one/versions", request(`"Unknown"`), 422, 42201},
		{"POST", "/subjects/one/versions", schema(`{"name":"a","type":"int","default":"x"}`), 422, 42201},
		{"POST", "/subjects/one/versions", schema(fieldA + "," + fieldA), 422, 42201},
		{"POST", "/subjects/one/versions", `{"schema":"{}","schemaType":"XML"}`, 422, 42201},
		{"POST", "/subjects/one/versions", `{"schema":"message M {","schemaType":"PROTOBUF"}`, 422, 42201},
		{"POST", "/subjects/one/versions", `{"schema":"\"int\"","id":77}`, 422, 42205},
		{"POST", "/subjects/one/versions", request(`"` + strings.Repeat("x", 1<<20) + `"`), 413, 413},
		{"POST", "/compatibility/subjects/one/versions/x", schema(fieldA), 422, 42202},
		{"POST", "/compatibility/subjects/one/versions", `{"schema":""}`, 422, 42201},
	}
	for _, b := range bad {
		r.refused(b.method, b.path, b.body, b.status, b.code)
	}
	r.want("GET", "/subjects?deleted=true", "", 200, `["one"]`)
	r.want("GET", "/subjects/one/versions", "", 200, `[1]`)
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	for _, ct := range []string{"application/json", "application/json;charset=UTF-8", "application/vnd.schemaregistry+json", "application/octet-stream"} {
		if code, got := r.ask("POST", "/subjects/one/versions", schema(fieldA), "Content-Type", ct); code != 200 {
			t.Errorf("%s: %d %s", ct, code, got)
		}
	}
	for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", ";"} {
		if code, got := r.ask("POST", "/subjects/one/versions", schema(fieldA), "Content-Type", ct); code != 415 {
			t.Errorf("%s: %d %s", ct, code, got)
		}
	}
}

func TestAnswersHaveTheTypeThatIsAskedFor(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	const own = "application/vnd.schemaregistry.v1+json"
	for accept, want := range map[string]string{
		"": own, "*/*": own, "application/json": "application/json", own: own,
		own + ", application/vnd.schemaregistry+json; q=0.9, application/json; q=0.5": own,
	} {
		for _, path := range []string{"/subjects", "/subjects/none/versions", "/nothing"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", accept)
			resp, err := r.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got := resp.Header.Get("Content-Type"); got != want {
				t.Errorf("%s, Accept: %q: %q, want %q", path, accept, got, want)
			}
		}
	}
}

func TestPageOfAnotherOriginCannotWrite(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	code, _ := r.ask("POST", "/subjects/one/versions", schema(fieldA), "Origin", "https://elsewhere.example", "Content-Type", "")
	if code != 403 {
		t.Errorf("status %d", code)
	}
	r.want("GET", "/subjects", "", 200, `[]`)
}

func TestFieldsOfNewerClientsAreAccepted(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	body := strings.TrimSuffix(schema(fieldA), "}") + `,"metadata":{"tags":{}},"ruleSet":null,"version":-1,"id":-1,"unheardOf":[1]}`
	r.want("POST", "/subjects/one/versions", body, 200, `{"id":1}`)
}

func TestSubjectMayBeAnyText(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	for _, name := range []string{"a%2Fb", "caf%C3%A9", "%20", "a%3Fb%23c", "%22%3C%3E", "orders.events-shop.Order"} {
		if code, got := r.ask("POST", "/subjects/"+name+"/versions", schema(fieldA)); code != 200 {
			t.Errorf("%s: %s", name, got)
		}
		r.want("GET", "/subjects/"+name+"/versions", "", 200, `[1]`)
	}
}

func quote(s string) string {
	return strings.TrimSuffix(strings.TrimPrefix(request(s), `{"schema":`), `}`)
}
