package server

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// A tenant that sends slowly takes no room from others.
func TestOneTenantDoesNotTakeTheRoomOfAll(t *testing.T) {
	c, _, _ := newServer(t)
	for range 70 { // more than all there is
		body, end := io.Pipe()
		t.Cleanup(func() { _ = end.Close() })
		req, err := http.NewRequestWithContext(t.Context(), "POST", c.url+Prefix+"/endpoints", body)
		must(t, err)
		req.Header.Set("Authorization", "Bearer ana")
		req.Header.Set("Content-Type", "application/json")
		go func() {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}()
	}
	status := func(key string) int {
		req, err := http.NewRequestWithContext(t.Context(), "GET", c.url+Prefix+"/endpoints", nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		must(t, resp.Body.Close())
		return resp.StatusCode
	}
	// Those that are too many take a place for a moment, too.
	for _, want := range []struct {
		key    string
		status int
	}{{"ana", http.StatusTooManyRequests}, {"rui", http.StatusOK}} {
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			got := status(want.key)
			if got == want.status {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s is answered %d, want %d", want.key, got, want.status)
			}
		}
	}
}
