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
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
	"github.com/waybillhq/waybill/webhook/sign"
)

type object = map[string]any

type client struct {
	t        *testing.T
	url, key string
}

func (c *client) as(key string) *client { return &client{c.t, c.url, key} }

// newServer is a server, with a sender beside it.
func newServer(t *testing.T) (*client, *webhook.Store, func(events ...webhook.Event)) {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	must(t, err)
	t.Cleanup(db.Close)
	must(t, pg.Migrate(t.Context(), db, incident.Migration(), webhook.Migration()))
	must(t, webhook.EnsureDays(t.Context(), db))
	box, err := seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
	must(t, err)
	quiet := slog.New(slog.DiscardHandler)
	store := webhook.NewStore(db, box, guard.New(guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), webhook.StoreConfig{MaxEndpoints: 3})
	sender := webhook.NewSender(store, webhook.Config{Every: 10 * time.Millisecond, Logger: quiet})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sender.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
	})
	h, err := New(Deps{Store: store, Wake: sender.Wake, Logger: quiet, Authenticate: func(_ context.Context, key string) (string, error) {
		switch key {
		case "ana", "rui":
			return "tenant-" + key, nil
		case "down":
			return "", errors.New("asked in vain")
		}
		return "", ErrKey
	}}, Config{})
	must(t, err)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	fan := func(events ...webhook.Event) {
		must(t, pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return store.Fan(t.Context(), tx, events...) }))
	}
	return &client{t, web.URL, "ana"}, store, fan
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *client) call(method, path string, in any, want int) object {
	c.t.Helper()
	var reader io.Reader
	if in != nil {
		body, err := json.Marshal(in)
		must(c.t, err)
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+Prefix+path, reader)
	must(c.t, err)
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(c.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(c.t, err)
	if resp.StatusCode != want {
		c.t.Fatalf("%s %s: %d %s, want %d", method, path, resp.StatusCode, text, want)
	}
	if want >= 400 && resp.Header.Get("Content-Type") != "application/problem+json" {
		c.t.Errorf("%s %s: no problem document: %s", method, path, text)
	}
	out := object{}
	if len(text) > 0 {
		must(c.t, json.Unmarshal(text, &out))
	}
	return out
}

func TestAnEndpointFromItsCreationToItsEnd(t *testing.T) {
	c, _, fan := newServer(t)
	answer := make(chan int, 100)
	secret := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key := <-secret
		secret <- key
		v, err := sign.NewVerifier(key)
		if err == nil {
			err = v.Verify(r.Header, body)
		}
		if err != nil {
			t.Errorf("%v", err)
		}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		default:
		}
	}))
	t.Cleanup(hook.Close)
	e := c.call("POST", "/endpoints", object{"url": hook.URL, "types": []string{"orders.>"}, "description": "ours"}, 201)
	secret <- e["secret"].(string)
	one := "/endpoints/" + e["id"].(string)
	if got := c.call("GET", one, nil, 200); got["secret"] != nil || got["state"] != "enabled" || got["description"] != "ours" {
		t.Errorf("%v", got)
	}
	until := func(event, state string) object {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			d := c.call("GET", one+"/deliveries/"+event, nil, 200)
			if d["state"] == state {
				return d
			}
			if time.Now().After(end) {
				t.Fatalf("%v, want it %s", d, state)
			}
		}
	}
	until(c.call("POST", one+"/ping", nil, 202)["event"].(string), "delivered")

	answer <- 410
	id := event.NewID()
	fan(webhook.Event{ID: id, Tenant: "tenant-ana", Type: "orders.created", Body: []byte(`{"a":1}`)})
	d := until(id.String(), "failed")
	if log := d["log"].([]any); len(log) != 1 || log[0].(object)["status"] != 410.0 {
		t.Errorf("%v", d)
	}
	if got := c.call("GET", one, nil, 200); got["state"] != "disabled" || got["reason"] == "" {
		t.Errorf("%v", got)
	}
	c.call("POST", one+"/ping", nil, 409)
	c.call("POST", one+"/enable", nil, 204)
	if n := c.call("POST", one+"/replay", object{"failed": true}, 202); n["count"] != 1.0 || n["next"] != nil {
		t.Errorf("%v", n)
	}
	until(id.String(), "delivered")
	c.call("POST", one+"/deliveries/"+id.String()+"/resend", nil, 202)
	until(id.String(), "delivered")
	if got := c.call("GET", one+"/deliveries?state=delivered&limit=1", nil, 200)["deliveries"].([]any); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if got := c.call("GET", "/events/"+id.String(), nil, 200); got["json"].(object)["a"] != 1.0 {
		t.Errorf("%v", got)
	}

	if two := c.call("POST", one+"/rotate", object{"overlap_s": 60}, 200)["secrets"].([]any); len(two) != 2 || two[1].(object)["key"] != e["secret"] {
		t.Errorf("%d secrets", len(two))
	}
	if got := c.call("GET", one+"/secrets", nil, 200)["secrets"].([]any); len(got) != 2 {
		t.Errorf("%d secrets", len(got))
	}
	if got := c.call("PUT", one, object{"url": hook.URL + "/other"}, 200); !strings.HasSuffix(got["url"].(string), "/other") || got["description"] != nil {
		t.Errorf("%v", got)
	}
	c.call("POST", one+"/disable", object{"reason": "on holiday"}, 204)
	c.call("DELETE", one, nil, 204)
	c.call("GET", one, nil, 404)
	if got := c.call("GET", "/endpoints", nil, 200)["endpoints"].([]any); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestAnotherTenantsEndpointDoesNotExist(t *testing.T) {
	c, _, fan := newServer(t)
	e := c.call("POST", "/endpoints", object{"url": "https://example.com/"}, 201)
	id := event.NewID()
	fan(webhook.Event{ID: id, Tenant: "tenant-ana", Type: "a", Body: []byte(`"secret"`)})
	other, one := c.as("rui"), "/endpoints/"+e["id"].(string)
	for _, r := range []struct {
		method, path string
		in           any
	}{
		{"GET", one, nil},
		{"PUT", one, object{"url": "https://example.com/"}},
		{"DELETE", one, nil},
		{"POST", one + "/enable", nil},
		{"POST", one + "/disable", object{}},
		{"GET", one + "/secrets", nil},
		{"POST", one + "/rotate", object{}},
		{"POST", one + "/ping", nil},
		{"POST", one + "/replay", object{"failed": true}},
		{"GET", one + "/deliveries", nil},
		{"GET", one + "/deliveries/" + id.String(), nil},
		{"POST", one + "/deliveries/" + id.String() + "/resend", nil},
		{"GET", "/events/" + id.String(), nil},
	} {
		other.call(r.method, r.path, r.in, 404)
	}
	if got := other.call("GET", "/endpoints", nil, 200)["endpoints"].([]any); len(got) != 0 {
		t.Errorf("%v", got)
	}
	c.call("GET", one, nil, 200)
}

func TestWhatIsWrongIsAProblemDocument(t *testing.T) {
	c, _, _ := newServer(t)
	c.as("thief").call("GET", "/endpoints", nil, 401)
	c.as("down").call("GET", "/endpoints", nil, 500)
	c.call("GET", "/nonsense", nil, 404)
	for _, in := range []object{
		{"url": "https://10.0.0.1/"},
		{"url": "nonsense"},
		{"url": "https://example.com", "types": []string{"a..b"}},
		{"url": "https://example.com", "algorithm": "md5"},
		{"url": "https://example.com", "unknown": 1},
		{},
	} {
		c.call("POST", "/endpoints", in, 422)
	}
	for range 3 {
		c.call("POST", "/endpoints", object{"url": "https://example.com/"}, 201)
	}
	c.call("POST", "/endpoints", object{"url": "https://example.com/"}, 409)
	c.as("rui").call("POST", "/endpoints", object{"url": "https://example.com/", "algorithm": "ed25519"}, 201)
	c.call("GET", "/endpoints/"+uuid.NewString(), nil, 404)
	c.call("GET", "/endpoints/nonsense", nil, 422)
	if doc := c.call("GET", "/openapi.json", nil, 200); doc["openapi"] != "3.1.0" {
		t.Errorf("%v", doc["openapi"])
	}
}
