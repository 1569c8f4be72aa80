package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/queue"
)

type client struct {
	t   *testing.T
	url string
	key string
}

func newServer(t *testing.T) *client {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := pg.Migrate(t.Context(), db, queue.Migration()); err != nil {
		t.Fatal(err)
	}
	h, err := New(Deps{DB: db, Logger: slog.New(slog.DiscardHandler), Authenticate: func(_ context.Context, key string) (string, error) {
		switch key {
		case "ana", "rui":
			return "tenant-" + key, nil
		case "down":
			return "", errors.New("asked in vain")
		}
		return "", ErrKey
	}}, Config{MaxQueues: 2})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return &client{t, web.URL, "ana"}
}

func (c *client) as(key string) *client { return &client{c.t, c.url, key} }

// call sends JSON and reads it.
func (c *client) call(method, path string, in any, want int) map[string]any {
	c.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		c.t.Fatal(err)
	}
	var reader io.Reader
	if in != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, reader)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != want {
		c.t.Fatalf("%s %s: %d %s, want %d", method, path, resp.StatusCode, text, want)
	}
	if want >= 400 && resp.Header.Get("Content-Type") != "application/problem+json" {
		c.t.Errorf("%s %s: no problem document: %s", method, path, text)
	}
	if (want == 429 || want == 503) && resp.Header.Get("Retry-After") == "" {
		c.t.Errorf("%s %s: no Retry-After", method, path)
	}
	out := map[string]any{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &out); err != nil {
			c.t.Fatalf("%s: %v", text, err)
		}
	}
	return out
}

type object = map[string]any

func (c *client) receive() object {
	c.t.Helper()
	got := c.call("POST", "/v1/queues/mail/receive", object{"max": 1, "wait_ms": 10_000}, 200)["messages"].([]any)
	if len(got) != 1 {
		c.t.Fatalf("%v", got)
	}
	return got[0].(object)
}

func TestAWorkerInAnyLanguage(t *testing.T) {
	c := newServer(t)
	c.call("POST", "/v1/queues", object{"name": "mail", "max_deliveries": 2, "lease_ms": 60_000}, 204)
	c.call("POST", "/v1/queues/mail/messages", object{"messages": []object{
		{"body": object{"to": "ana"}, "headers": object{"a": "b"}, "dedupe_id": "1", "group": "g"}, {"base64": "AAE=", "content_type": "x/y"},
	}}, 200)
	again := c.call("POST", "/v1/queues/mail/messages", object{"messages": []object{{"body": 1, "dedupe_id": "1"}}}, 200)
	if again["sent"].([]any)[0].(object)["duplicate"] != true {
		t.Errorf("%v", again)
	}
	seen := map[string]bool{}
	for range 2 {
		m := c.receive()
		if body, ok := m["body"].(object); ok {
			seen["json"] = body["to"] == "ana" && m["headers"].(object)["a"] == "b" && m["group"] == "g"
		} else {
			seen["bytes"] = m["base64"] == "AAE=" && m["content_type"] == "x/y"
		}
		c.call("POST", "/v1/queues/mail/extend", object{"receipts": []any{m["receipt"]}, "lease_ms": 90_000}, 204)
		c.call("POST", "/v1/queues/mail/ack", object{"receipts": []any{m["receipt"]}}, 204)
		p := c.call("POST", "/v1/queues/mail/ack", object{"receipts": []any{m["receipt"]}}, 409)
		if p["receipts"].([]any)[0] != m["receipt"] {
			t.Errorf("%v", p)
		}
	}
	if !seen["json"] || !seen["bytes"] {
		t.Errorf("%v", seen)
	}
}

func TestDeadLettersAreSeenRedrivenAndDropped(t *testing.T) {
	c := newServer(t)
	c.call("POST", "/v1/queues", object{"name": "mail", "max_deliveries": 1}, 204)
	c.call("POST", "/v1/queues/mail/messages", object{"messages": []object{{"body": "x"}}}, 200)
	die := func() {
		c.call("POST", "/v1/queues/mail/nack", object{"receipts": []any{c.receive()["receipt"]}, "reason": "no such address"}, 204)
	}
	die()
	dead := c.call("GET", "/v1/queues/mail/dead", nil, 200)["dead"].([]any)
	if len(dead) != 1 || dead[0].(object)["error"] != "no such address" || dead[0].(object)["body"] != "x" {
		t.Fatalf("%v", dead)
	}
	id := dead[0].(object)["id"]
	if n := c.call("POST", "/v1/queues/mail/dead/redrive", object{"ids": []any{id}}, 200)["count"]; n != 1.0 {
		t.Error(n)
	}
	die()
	if n := c.call("POST", "/v1/queues/mail/dead/drop", object{}, 200)["count"]; n != 1.0 {
		t.Error(n)
	}
	if s := c.call("GET", "/v1/queues/mail", nil, 200); s["dead"] != 0.0 || s["ready"] != 0.0 {
		t.Errorf("%v", s)
	}
}

func TestAFullQueueAnswers429(t *testing.T) {
	c := newServer(t)
	c.call("POST", "/v1/queues", object{"name": "mail", "max_length": 2}, 204)
	two := object{"messages": []object{{"body": 1}, {"body": 2}}}
	c.call("POST", "/v1/queues/mail/messages", two, 200)
	c.call("POST", "/v1/queues/mail/messages", two, 429)
	c.call("POST", "/v1/queues/mail/purge", nil, 200)
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		req, _ := json.Marshal(two)
		r, _ := http.NewRequestWithContext(t.Context(), "POST", c.url+"/v1/queues/mail/messages", bytes.NewReader(req))
		r.Header.Set("Authorization", "Bearer ana")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == 200 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no room after a minute")
		}
	}
}

func TestAnotherTenantsQueueDoesNotExist(t *testing.T) {
	c := newServer(t)
	c.call("POST", "/v1/queues", object{"name": "mail"}, 204)
	c.call("POST", "/v1/queues/mail/messages", object{"messages": []object{{"body": "secret"}}}, 200)
	receipt := c.receive()["receipt"]
	other := c.as("rui")
	if all := other.call("GET", "/v1/queues", nil, 200)["queues"].([]any); len(all) != 0 {
		t.Errorf("%v", all)
	}
	for path, body := range map[string]object{
		"messages": {"messages": []object{{"body": 1}}}, "receive": {}, "dead/redrive": {}, "dead/drop": {}, "purge": nil,
	} {
		var in any
		if body != nil {
			in = body
		}
		other.call("POST", "/v1/queues/mail/"+path, in, 404)
	}
	other.call("GET", "/v1/queues/mail", nil, 404)
	other.call("GET", "/v1/queues/mail/dead", nil, 404)
	other.call("POST", "/v1/queues/mail/ack", object{"receipts": []any{receipt}}, 409)
	c.call("POST", "/v1/queues/mail/ack", object{"receipts": []any{receipt}}, 204)
}

func TestWhatIsWrongIsAProblemDocument(t *testing.T) {
	c := newServer(t)
	c.as("thief").call("GET", "/v1/queues", nil, 401)
	c.as("down").call("GET", "/v1/queues", nil, 500)
	c.call("GET", "/v1/queues/mail/nonsense", nil, 404)
	c.call("POST", "/v1/queues", object{"name": "Bad Name"}, 422)
	c.call("POST", "/v1/queues", object{"name": "mail", "lease_ms": 1}, 422)
	c.call("POST", "/v1/queues", object{"name": "mail"}, 204)
	c.call("POST", "/v1/queues/mail/ack", object{"receipts": []any{"nonsense"}}, 422)
	c.call("POST", "/v1/queues/mail/messages", object{"messages": []object{{"body": 1, "priority": 10}}}, 422)
	if doc := c.call("GET", "/v1/queues/openapi.json", nil, 200); doc["openapi"] != "3.1.0" {
		t.Errorf("%v", doc["openapi"])
	}
}

func TestQueuesAreLimitedAndRemoved(t *testing.T) {
	c := newServer(t)
	for name, want := range map[string]int{"a": 204, "b": 204} {
		c.call("POST", "/v1/queues", object{"name": name}, want)
	}
	c.call("POST", "/v1/queues", object{"name": "c"}, 409)
	c.as("rui").call("DELETE", "/v1/queues/a", nil, 404)
	c.call("POST", "/v1/queues/a/messages", object{"messages": []object{{"body": 1}}}, 200)
	c.call("DELETE", "/v1/queues/a", nil, 409)
	c.call("DELETE", "/v1/queues/b", nil, 204)
	c.call("POST", "/v1/queues", object{"name": "c"}, 204)
}
