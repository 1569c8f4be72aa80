package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/webhook"
)

func TestRecentAndBacklogTellHowEachEndpointDoes(t *testing.T) {
	c, _, fan := newServer(t)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
		}
	}))
	t.Cleanup(hook.Close)
	fine := c.call("POST", "/endpoints", object{"url": hook.URL + "/fine"}, 201)["id"].(string)
	gone := c.call("POST", "/endpoints", object{"url": hook.URL + "/gone"}, 201)["id"].(string)
	c.as("rui").call("POST", "/endpoints", object{"url": hook.URL}, 201)
	if got := c.call("GET", "/recent", nil, 200)["recent"].([]any); len(got) != 0 {
		t.Errorf("%v", got)
	}
	id := event.NewID()
	fan(webhook.Event{ID: id, Tenant: "tenant-ana", Type: "a", Body: []byte(`1`)}, webhook.Event{ID: event.NewID(), Tenant: "tenant-rui", Type: "a", Body: []byte(`1`)})
	want := map[string]string{fine: "delivered", gone: "failed"}
	got := map[string]string{}
	for end := time.Now().Add(time.Minute); got[fine] != want[fine] || got[gone] != want[gone]; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v", got)
		}
		clear(got)
		for _, each := range c.call("GET", "/recent", nil, 200)["recent"].([]any) {
			all := each.(object)["deliveries"].([]any)
			one := all[0].(object)
			got[each.(object)["endpoint"].(string)] = one["state"].(string)
			if len(all) != 1 || one["event"] != id.String() || one["at"] == nil {
				t.Fatalf("%v", all)
			}
		}
	}
	if len(got) != 2 {
		t.Errorf("endpoints of others are told of: %v", got)
	}
	for endpoint, failed := range map[string]float64{fine: 0, gone: 1} {
		if b := c.call("GET", "/endpoints/"+endpoint+"/backlog", nil, 200); b["failed"] != failed || b["pending"] != 0.0 {
			t.Errorf("%v", b)
		}
	}
	c.as("rui").call("GET", "/endpoints/"+gone+"/backlog", nil, 404)
}

func TestWhatIsInvalidNamesItsField(t *testing.T) {
	c, _, _ := newServer(t)
	for field, in := range map[string]object{
		"body.url":         {"url": "https://10.0.0.1/"},
		"body.types":       {"url": "https://example.com", "types": []string{"a..b"}},
		"body.description": {"url": "https://example.com", "description": "two\nlines"},
		"body.algorithm":   {"url": "https://example.com", "algorithm": "md5"},
	} {
		errs, _ := c.call("POST", "/endpoints", in, 422)["errors"].([]any)
		if len(errs) != 1 || errs[0].(object)["location"] != field || errs[0].(object)["message"] == "" {
			t.Errorf("%s: %v", field, errs)
		}
	}
}
