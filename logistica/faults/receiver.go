package faults

import (
	"io"
	"net/http"
	"strings"
)

// Receiver has calls of webhooks answered as a receiver that is broken would:
// those that webhook-500 strikes get a 500 and are not made, the others go on to
// next. It decides by the event and the host that is called, so that a retry is
// decided as the call before it.
func (f *Flags) Receiver(next http.RoundTripper) http.RoundTripper { return receiver{f, next} }

type receiver struct {
	flags *Flags
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	if !r.flags.Fails(Webhook500, req.Header.Get("webhook-id"), req.URL.Host) {
		return r.next.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close() // as whoever sends a request does
	}
	return &http.Response{
		Status: "500 Internal Server Error", StatusCode: http.StatusInternalServerError, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("fault " + Webhook500 + " is on")), Request: req,
	}, nil
}
