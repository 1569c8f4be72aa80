package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry/server"
)

// registry is a running server under test.
type registry struct {
	*testing.T
	url  string
	sr   *sr.Client
	http *http.Client
	stop func()
}

func start(t *testing.T, e *brokertest.Engine, topic string) *registry {
	t.Helper()
	return startWith(t, e, server.Config{Topic: topic})
}

func startWith(t *testing.T, e *brokertest.Engine, cfg server.Config) *registry {
	t.Helper()
	cfg.Capabilities, cfg.Logger = e.Capabilities, e.Logger
	s := server.New(e.Config, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	web := httptest.NewServer(s)
	select {
	case <-s.Ready():
	case err := <-ended:
		t.Fatalf("run: %v", err)
	}
	client, err := sr.NewClient(sr.URLs(web.URL), sr.HTTPClient(web.Client()))
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	r := &registry{T: t, url: web.URL, sr: client, http: web.Client(), stop: func() {
		if stopped {
			return
		}
		stopped = true
		web.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}}
	t.Cleanup(r.stop)
	return r
}

func fresh(t *testing.T) *registry {
	t.Helper()
	return start(t, brokertest.New(t), brokertest.Topic(t, "schemas"))
}

// ask sends a request and returns the answer's status and body.
func (r *registry) ask(method, path, body string, headers ...string) (int, string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json; charset=utf-8")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.http.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp.StatusCode, string(bytes.TrimSpace(out))
}

// want asks and compares the answer with JSON of the same meaning. A GUID, and
// what a registration tells besides the id, is held by the tests of GUIDs.
func (r *registry) want(method, path, body string, status int, answer string) {
	r.Helper()
	code, got := r.ask(method, path, body)
	if code != status {
		r.Errorf("%s %s: status %d, want %d: %s", method, path, code, status, got)
		return
	}
	if got = withoutGUIDs(got, strings.HasPrefix(answer, `{"id":`)); !sameJSON(got, answer) {
		r.Errorf("%s %s:\n got %s\nwant %s", method, path, got, answer)
	}
}

// refused asks and compares the error code.
func (r *registry) refused(method, path, body string, status, code int) {
	r.Helper()
	got, text := r.ask(method, path, body)
	var f struct {
		Code    int    `json:"error_code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil || got != status || f.Code != code || f.Message == "" {
		r.Errorf("%s %s %.80s: status %d code %d, want %d and %d: %.300s", method, path, body, got, f.Code, status, code, text)
	}
}

func withoutGUIDs(text string, idOnly bool) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			delete(m, "guid")
			if id, ok := m["id"]; ok && idOnly {
				clear(m)
				m["id"] = id
			}
		}
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// schema is the request body for an Avro record with the given fields.
func schema(fields string) string {
	return request(`{"type":"record","name":"Account","namespace":"bank","fields":[` + fields + `]}`)
}

func request(avro string) string {
	b, _ := json.Marshal(map[string]any{"schema": avro})
	return string(b)
}

const (
	fieldA = `{"name":"a","type":"string"}`
	fieldB = `{"name":"b","type":"int","default":0}`
	fieldC = `{"name":"c","type":"int"}`
)
