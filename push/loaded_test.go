package push_test

import (
	"net/http"
	"testing"

	"github.com/waybillhq/waybill/push"
)

func TestHubIsNotServedBeforeItIsLoaded(t *testing.T) {
	w := newWorld(t, 1)
	hub, err := push.New(w.Config.Client, push.Config{Topics: []string{w.topic}, Route: route, Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	srv := newServer(t, hub)
	if c := (&site{url: srv}).get(t, "a", ""); c.res.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("status %d", c.res.StatusCode)
	}
	if hub.Loaded(t.Context()) == nil {
		t.Error("a hub that reads nothing calls itself loaded")
	}
	s := w.site(t, nil)
	if err := s.Loaded(t.Context()); err != nil {
		t.Error(err)
	}
	s.stop()
	if s.Loaded(t.Context()) == nil {
		t.Error("a hub that stopped calls itself loaded")
	}
}
