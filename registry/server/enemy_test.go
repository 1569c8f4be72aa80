package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// A subject's name may end with a slash: what is done to it must not be done to
// the subject without.
func TestASubjectThatEndsWithASlashIsAnother(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/a/versions", schema(fieldA), 200, `{"id":1}`)
	r.refused("POST", "/subjects/a%2F", schema(fieldA), 404, 40401)
	r.refused("DELETE", "/subjects/a%2F", "", 404, 40401)
	r.want("PUT", "/config/a%2F", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.refused("GET", "/config/a", "", 404, 40408)
	r.want("POST", "/subjects/a%2F/versions", request(`"int"`), 200, `{"id":2}`)
	r.want("GET", "/subjects", "", 200, `["a","a/"]`)
	r.want("DELETE", "/subjects/a%2f/", "", 200, `[1]`)
	r.want("GET", "/subjects/", "", 200, `["a"]`)
}

// A path that is not clean is not taken for another: POST /subjects//versions
// would become a look-up under a subject "versions".
func TestAPathThatIsNotCleanLeadsNowhere(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.ask("POST", "/subjects/versions/versions", schema(fieldA))
	for _, p := range []string{"/subjects//versions", "/subjects/./versions", "/x/../subjects/versions", "//subjects/versions", "/subjects/versions//"} {
		for _, method := range []string{"POST", "DELETE", "GET"} {
			req, err := http.NewRequestWithContext(t.Context(), method, r.url, strings.NewReader(schema(fieldA)))
			if err != nil {
				t.Fatal(err)
			}
			req.URL.Path = p
			resp, err := r.http.Transport.RoundTrip(req) // follows no redirect
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 404 || !strings.Contains(string(text), `"error_code":404`) {
				t.Errorf("%s %s: %d %s", method, p, resp.StatusCode, text)
			}
		}
	}
	r.want("GET", "/subjects", "", 200, `["versions"]`)
	r.want("POST", "/subjects/%2E%2E/versions", schema(fieldA), 200, `{"id":1}`) // a name like another
}

// ":.:" is the default context and "" within it nobody's name; in a config it
// means all.
func TestNoSubjectIsCalledNothing(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	for _, name := range []string{":.:", ":.__GLOBAL:", "%3A.%3A"} {
		r.refused("POST", "/subjects/"+name+"/versions", schema(fieldA), 422, 42208)
		r.refused("POST", "/subjects/"+name, schema(fieldA), 422, 42208)
		r.refused("DELETE", "/subjects/"+name, "", 422, 42208)
		r.refused("GET", "/subjects/"+name+"/versions", "", 422, 42208)
		r.refused("POST", "/compatibility/subjects/"+name+"/versions", schema(fieldA), 422, 42208)
		r.want("GET", "/config/"+name, "", 200, `{"compatibilityLevel":"BACKWARD"}`)
	}
	r.want("GET", "/subjects?deleted=true", "", 200, `[]`)
}

// A version is a 32-bit number in every client and in Confluent's registry,
// which would not read the topic past a larger one.
func TestAfterTheLastVersionThereIsNone(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("PUT", "/mode/one", `{"mode":"IMPORT"}`, 200, `{"mode":"IMPORT"}`)
	r.want("POST", "/subjects/one/versions", `{"schema":"\"int\"","id":7,"version":2147483647}`, 200, `{"id":7}`)
	r.want("PUT", "/mode/one", `{"mode":"READWRITE"}`, 200, `{"mode":"READWRITE"}`)
	r.refused("POST", "/subjects/one/versions", request(`"long"`), 422, 42201)
	r.want("GET", "/subjects/one/versions", "", 200, `[2147483647]`)
}

// What another registry wrote without an id must not stand for all that is not
// there.
func TestARecordWithoutAnIDAnswersForNobodyElse(t *testing.T) {
	t.Parallel()
	e := brokertest.New(t)
	topic := brokertest.Topic(t, "schemas")
	start(t, e, topic).stop()
	put(t, e, topic, `{"keytype":"SCHEMA","subject":"odd","version":1,"magic":1}`, `{"subject":"odd","version":1,"schema":"\"bytes\"","deleted":false}`)
	r := start(t, e, topic)
	r.refused("GET", "/schemas/guids/0b4e8e7d-2d5b-4b0e-8a84-2d4c1f1f6c3f", "", 404, 40403)
	r.refused("GET", "/schemas/guids/0b4e8e7d-2d5b-4b0e-8a84-2d4c1f1f6c3f/ids", "", 404, 40403)
	r.want("POST", "/subjects/one/versions", request(`"int"`), 200, `{"id":1}`)
	r.want("GET", "/subjects/one/versions/1/schema", "", 200, `"int"`)
	r.want("POST", "/compatibility/subjects/odd/versions", request(`"int"`), 200, `{"is_compatible":false}`)
}

// Who asks is looked at before what is asked for.
func TestNoSpellingOfARequestIsLetPast(t *testing.T) {
	r := guarded(t)
	for _, path := range []string{
		"/", "/subjects", "/subjects/", "/SUBJECTS", "/subjects/%2e%2e/versions", "/%73ubjects", "//subjects", "/subjects/../subjects",
		"/schemas/types", "/schemas/ids/1", "/mode", "/config/", "/contexts", "/nothing", "/subjects?deleted=true",
	} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "PROPFIND"} {
			req, err := http.NewRequestWithContext(t.Context(), method, r.url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if req.URL, err = url.Parse(r.url + path); err != nil {
				t.Fatal(err)
			}
			resp, err := r.http.Transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != 401 {
				t.Errorf("%s %s: %d", method, path, resp.StatusCode)
			}
		}
	}
}

func TestSubjectsInOtherContextsAreRefusedHoweverTheyAreSpelled(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	for _, name := range []string{":.ctx:one", "%3A.ctx%3Aone", ":.ctx:", ":.:%3A.ctx:one", ":.x"} {
		r.refused("POST", "/subjects/"+name+"/versions", schema(fieldA), 422, 42208)
		r.refused("PUT", "/mode/"+name, `{"mode":"READONLY"}`, 422, 42208)
		r.refused("DELETE", "/subjects/"+name, "", 422, 42208)
	}
	for path, name := range map[string]string{
		":.:one": "one", "%E8%AB%96%2F%F0%9F%9A%9A": "論/🚚", "e%CC%81": "e\u0301", "%C3%A9": "é", "a%252Fb": "a%2Fb", "a+b": "a+b", "ctx:two": "ctx:two",
	} {
		r.ask("POST", "/subjects/"+path+"/versions", schema(fieldA))
		_, got := r.ask("GET", "/subjects/"+path+"/versions/1", "")
		if !strings.Contains(got, `"subject":"`+name+`"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// A client that takes its answer at a crawl holds nobody up.
func TestASlowReaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("PUT", "/config", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	for i := range 5 { // more than the buffers of a connection
		doc := strings.Repeat("x", 900_000)
		if status, got := r.ask("POST", fmt.Sprintf("/subjects/large%d/versions", i), request(fmt.Sprintf(`{"type":"record","name":"R%d","doc":%q,"fields":[]}`, i, doc))); status != 200 {
			t.Fatalf("%d %.200s", status, got)
		}
	}
	var slow []net.Conn
	for range 4 {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "GET /schemas HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	for _, c := range slow { // the answer has begun
		if _, err := bufio.NewReader(c).ReadByte(); err != nil {
			t.Fatal(err)
		}
	}
	r.want("POST", "/subjects/one/versions", request(`"int"`), 200, `{"id":6}`)
	r.want("DELETE", "/subjects/one", "", 200, `[1]`)
}

func TestARequestOfAnotherShapeIsToldInItsOwnWords(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	for body, want := range map[string]string{
		`7`: "want an object, got number", `{"schema":7}`: "schema cannot be number", `{"schema":"x","references":[{"version":"1"}]}`: "references.version cannot be string", `[`: "unexpected end",
	} {
		status, got := r.ask("POST", "/subjects/one/versions", body)
		if status != 400 || !strings.Contains(got, want) || strings.Contains(got, "server.") || strings.Contains(got, "Go ") {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
}
