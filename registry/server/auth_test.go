package server_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry/server"
)

func TestOnlyThoseWithCredentialsAreAnswered(t *testing.T) {
	t.Parallel()
	e := brokertest.New(t)
	r := startWith(t, e, server.Config{
		Topic: brokertest.Topic(t, "schemas"),
		Auth:  server.Auth{Users: map[string]string{"ann": "s:cret", "bob": "other"}, Tokens: []string{"token-1", ""}},
	})
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct {
		authorization string
		status        int
	}{
		{"", 401},
		{basic("ann:s:cret"), 200},
		{basic("bob:other"), 200},
		{basic("ann:other"), 401}, // each has its own
		{basic("ann:"), 401},
		{basic(":"), 401},
		{basic("ann"), 401},
		{"Basic nonsense", 401},
		{"Bearer token-1", 200},
		{"bearer token-1", 200},
		{"Bearer token-12", 401},
		{"Bearer", 401},
		{"Bearer ", 401}, // an empty one in the configuration lets nobody in
		{"token-1", 401},
		{basic("token-1:"), 401},
	} {
		status, body := r.ask("GET", "/subjects", "", "Authorization", c.authorization)
		if status != c.status || (status == 401) != strings.Contains(body, `"error_code":401`) {
			t.Errorf("%q: %d, want %d: %s", c.authorization, status, c.status, body)
		}
		if strings.Contains(body, "cret") {
			t.Errorf("%q: the answer tells a secret: %s", c.authorization, body)
		}
	}
	r.refused("POST", "/subjects/one/versions", schema(fieldA), 401, 401)
	r.refused("GET", "/nothing", "", 401, 401)
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/subjects", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Basic realm=") {
		t.Errorf("WWW-Authenticate: %q", got)
	}
}

// guarded is a registry that asks for credentials.
func guarded(t *testing.T) *registry {
	t.Helper()
	return startWith(t, brokertest.New(t), server.Config{
		Topic: brokertest.Topic(t, "schemas"),
		Auth:  server.Auth{Users: map[string]string{"ann": "secret"}, Tokens: []string{"token"}},
	})
}
