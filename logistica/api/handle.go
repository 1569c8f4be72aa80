package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/waybillhq/waybill/event"
)

const requestIDHeader = "X-Request-Id"

var (
	requestIDForm   = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)
	traceParentForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

// ServeHTTP answers a request under its id, within bounds, and accounts for it.
func (s *service) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	start := time.Now()
	w := &recorder{ResponseWriter: out}
	r = identify(w, r)
	secure(w.Header())
	defer func() { s.account(w, r, time.Since(start)) }() // also of a request that is aborted
	defer func() { s.recovered(w, r, recover()) }()
	s.dispatch(w, r)
}

// identify begins the chain of causes: every event that the request leads to
// carries its id.
func identify(w http.ResponseWriter, r *http.Request) *http.Request {
	id := r.Header.Get(requestIDHeader)
	if !requestIDForm.MatchString(id) {
		id = event.NewID().String()
	}
	parent := r.Header.Get("Traceparent")
	if !isTraceParent(parent) {
		parent = ""
	}
	w.Header().Set(requestIDHeader, id)
	return r.WithContext(event.WithRequest(r.Context(), id, parent))
}

// isTraceParent knows the header's one form, without the ids of zeros and the
// version that W3C Trace Context calls invalid.
func isTraceParent(text string) bool {
	return traceParentForm.MatchString(text) && text[:2] != "ff" &&
		strings.Trim(text[3:35], "0") != "" && strings.Trim(text[36:52], "0") != ""
}

// secure sets what holds for every answer; the pages narrow the policy further.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

func (s *service) dispatch(w *recorder, r *http.Request) {
	s.bound(w, r)
	h, pattern := s.mux.Handler(r)
	switch {
	case pattern == "":
		unrouted(w, r, h)
	case r.ContentLength > maxBody:
		w.Header().Set("Connection", "close") // the body is not going to be read
		problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("A request body has at most %d bytes.", maxBody)).write(w, r)
	case s.streams[pattern]:
		unbound(w)
		s.mux.ServeHTTP(w, r)
	default:
		s.bounded(w, r)
	}
}

// bound gives the client's reading, and its writing where it has something to
// say, their time. That holds for requests that are refused as well: the server
// reads what is left of their bodies before it goes on.
func (s *service) bound(w *recorder, r *http.Request) {
	c, until := http.NewResponseController(w.ResponseWriter), time.Now().Add(3*s.cfg.RequestTimeout)
	_ = c.SetWriteDeadline(until) // only a test's recorder has none
	if r.ContentLength != 0 {
		_ = c.SetReadDeadline(until)
	}
}

// bounded serves a request that is no stream: in one of the slots, and with a
// deadline for our work.
func (s *service) bounded(w *recorder, r *http.Request) {
	if !s.enter() {
		overloaded().write(w, r)
		return
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
	defer cancel()
	if r.ContentLength != 0 {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
	bounded := r.WithContext(ctx)
	s.mux.ServeHTTP(w, bounded)
	r.Pattern = bounded.Pattern
}

// enter takes a slot, if there is one.
func (s *service) enter() bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *service) leave() { <-s.slots }

func overloaded() *Problem {
	return typed(http.StatusServiceUnavailable, typeOverloaded, "Overloaded",
		"Too many requests are at work. Nothing was done; try again.")
}

// unbound lifts the deadline: a stream has as long as it lives.
func unbound(w *recorder) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
}

// unrouted answers where the router has no route, with a problem instead of
// the router's plain text. It asks the router's own handler which it is.
func unrouted(w http.ResponseWriter, r *http.Request, h http.Handler) {
	var ask asked
	h.ServeHTTP(&ask, r)
	if ask.status == http.StatusMethodNotAllowed {
		allow := ask.Header().Get("Allow")
		w.Header().Set("Allow", allow)
		problem(http.StatusMethodNotAllowed, "This address answers to "+allow+".").write(w, r)
		return
	}
	problem(http.StatusNotFound, "There is nothing at this address.").write(w, r)
}

// asked takes an answer's head and drops its body.
type asked struct {
	header http.Header
	status int
}

func (a *asked) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}
func (a *asked) WriteHeader(status int)      { a.status = status }
func (a *asked) Write(b []byte) (int, error) { return len(b), nil }

func (s *service) recovered(w *recorder, r *http.Request, cause any) {
	if cause == nil {
		return
	}
	if aborted, _ := cause.(error); !errors.Is(aborted, http.ErrAbortHandler) && r.Context().Err() == nil {
		s.Logger.ErrorContext(r.Context(), "request panicked", "request_id", event.Correlation(r.Context()),
			"panic", cause, "stack", string(debug.Stack()))
	}
	if w.status != 0 {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	problem(http.StatusInternalServerError, "Something failed here. The request id finds it in the log.").write(w, r)
}

// account logs and counts a request that was answered. A stream counts only
// when it was refused: how long it stayed open is no measure of the service.
func (s *service) account(w *recorder, r *http.Request, took time.Duration) {
	if !s.streams[r.Pattern] || w.status >= http.StatusBadRequest {
		s.metrics.observe(r.Pattern, w.status, took)
	}
	if s.Logger.Enabled(r.Context(), slog.LevelDebug) {
		// The route, not the path: a tracking link's path is a secret.
		s.Logger.DebugContext(r.Context(), "request", "request_id", event.Correlation(r.Context()),
			"route", r.Pattern, "method", r.Method, "status", w.status, "took", took)
	}
}
