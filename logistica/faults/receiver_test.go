package faults_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/logistica/faults"
)

// countedCalls is a transport that makes no call.
type countedCalls struct{ n int }

// RoundTrip implements http.RoundTripper.
func (c *countedCalls) RoundTrip(*http.Request) (*http.Response, error) {
	c.n++
	return httptest.NewRecorder().Result(), nil
}

func TestAReceiverFailsForItsShareAndTheSameEventEachTime(t *testing.T) {
	t.Parallel()
	f := process(t, database(t))
	if err := f.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	through := &countedCalls{}
	client := &http.Client{Transport: f.Receiver(through)}
	const events = 500
	call := func(i int) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://hook.example/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("webhook-id", strconv.Itoa(i))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for i := range events {
		if got := call(i); got != http.StatusOK {
			t.Fatalf("%d while nothing is set", got)
		}
	}
	set(t, f, faults.Webhook500, 30, 0)
	through.n = 0
	struck := 0
	for i := range events {
		first := call(i)
		if first == http.StatusInternalServerError {
			struck++
		}
		if again := call(i); again != first {
			t.Errorf("event %d: %d and then %d", i, first, again)
		}
	}
	if struck < events*20/100 || struck > events*40/100 || through.n != 2*(events-struck) {
		t.Errorf("%d of %d struck at 30 %%, %d calls made", struck, events, through.n)
	}
}
