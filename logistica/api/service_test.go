package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/api"
)

// counts is a read model that does what a test says.
type counts func(ctx context.Context) (map[string]int64, error)

func (c counts) Counts(ctx context.Context, _ uuid.UUID) (map[string]int64, error) { return c(ctx) }

func withCounts(c counts) func(*api.Deps, *api.Config) {
	return func(d *api.Deps, _ *api.Config) { d.Counts = c }
}

func TestFailuresWithinAreNotTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do     counts
		status int
	}{
		"error": {func(context.Context) (map[string]int64, error) { return nil, errors.New("secret at db.internal") }, 500},
		"timeout": {func(ctx context.Context) (map[string]int64, error) {
			return nil, fmt.Errorf("secret: %w", context.DeadlineExceeded)
		}, 503},
		"panic": {func(context.Context) (map[string]int64, error) { panic("secret") }, 500},
	} {
		m := newBed(t, withCounts(c.do)).merchant(t, "Padaria")
		a := m.ask(t, "GET", "/v1/orders/counts", "")
		a.problem(t, c.status)
		if strings.Contains(string(a.body), "secret") {
			t.Errorf("%s tells %s", name, a.body)
		}
		if (a.header.Get("Retry-After") != "") != (c.status == 503) {
			t.Errorf("%s: Retry-After %q", name, a.header.Get("Retry-After"))
		}
		m.ask(t, "GET", "/v1/me", "").into(t, http.StatusOK, new(map[string]string)) // it goes on
	}
}

func TestWorkEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	m := newBed(t, withCounts(func(ctx context.Context) (map[string]int64, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}), func(_ *api.Deps, c *api.Config) { c.RequestTimeout = 50 * time.Millisecond }).merchant(t, "Padaria")
	m.ask(t, "GET", "/v1/orders/counts", "").problem(t, http.StatusServiceUnavailable)
}

func TestMoreRequestsThanSlotsAreToldToComeBack(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	m := newBed(t, withCounts(func(context.Context) (map[string]int64, error) {
		entered <- struct{}{}
		<-leave
		return nil, nil
	}), func(_ *api.Deps, c *api.Config) { c.MaxInFlight = 2 }).merchant(t, "Padaria")
	done := make(chan answer)
	for range 2 {
		go func() { done <- m.ask(t, "GET", "/v1/orders/counts", "") }()
		<-entered
	}
	a := m.ask(t, "GET", "/v1/me", "")
	a.problem(t, http.StatusServiceUnavailable)
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	m.ask(t, "GET", "/v1/events", "").problem(t, http.StatusServiceUnavailable)
	close(leave)
	for range 2 {
		if a := <-done; a.status != http.StatusOK {
			t.Errorf("in a slot: %d", a.status)
		}
	}
	m.ask(t, "GET", "/v1/me", "").into(t, http.StatusOK, new(map[string]string))
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	for _, path := range []string{"/v1/me", "/v1/nothing", "/docs", "/openapi.json", "/healthz", "/v1/events"} {
		h := m.ask(t, "GET", path, "").header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "X-Request-Id": "-",
		} {
			if !strings.Contains(h.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
	}
}

func TestReadinessNamesWhatFailedAndNotWhy(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	b := newBed(t, func(d *api.Deps, _ *api.Config) {
		d.Ready = append(d.Ready, api.Check{Name: "broker", Ask: func(context.Context) error {
			if broken.Load() {
				return errors.New("secret at broker.internal")
			}
			return nil
		}})
	})
	var ready struct {
		Status string
		Checks map[string]string
	}
	b.ask(t, "GET", "/readyz", "").into(t, http.StatusOK, &ready)
	broken.Store(true)
	a := b.ask(t, "GET", "/readyz", "")
	a.into(t, http.StatusServiceUnavailable, &ready)
	if ready.Checks["broker"] != "failed" || ready.Checks["database"] != "ok" || strings.Contains(string(a.body), "secret") {
		t.Errorf("%s", a.body)
	}
	b.ask(t, "GET", "/healthz", "").into(t, http.StatusOK, new(map[string]string))
}

func TestMetricsNameRoutesNotPaths(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	o := m.create(t)
	m.ask(t, "GET", "/v1/orders/"+o.ID.String(), "")
	m.ask(t, "GET", "/v1/track/"+o.TrackingToken, "")
	m.ask(t, "GET", "/v1/events", "")
	m.ask(t, "GET", "/secret", "")
	m.bed.ask(t, "GET", "/v1/events", "")
	text := string(m.ask(t, "GET", "/metrics", "").body)
	for _, line := range []string{
		`_count{route="POST /v1/orders",status="201"} 1`, `_count{route="GET /v1/orders/{id}",status="200"} 1`,
		`_count{route="GET /v1/track/{token}",status="200"} 1`, `_count{route="none",status="404"} 1`,
		`_count{route="GET /v1/events",status="401"} 1`,
	} {
		if !strings.Contains(text, "waybill_http_request_duration_seconds"+line) {
			t.Errorf("no %s", line)
		}
	}
	for _, secret := range []string{o.ID.String(), o.TrackingToken, "/secret", `route="GET /v1/events",status="200"`} {
		if strings.Contains(text, secret) {
			t.Errorf("metrics hold %s", secret)
		}
	}
}

func TestDocumentsNeedNoOtherHost(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	elsewhere := regexp.MustCompile(`(?:src|href)="(?:https?:)?//|@import|<script`)
	for _, path := range []string{"/docs", "/docs/style.css"} {
		a := b.ask(t, "GET", path, "")
		if a.status != http.StatusOK || elsewhere.Match(a.body) {
			t.Errorf("%s: %d %s", path, a.status, elsewhere.Find(a.body))
		}
	}
	page := string(b.ask(t, "GET", "/docs", "").body)
	a := b.ask(t, "GET", "/openapi.json", "")
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct{ Security *[]any }
	}
	if err := json.Unmarshal(a.body, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("openapi %q: %v", doc.OpenAPI, err)
	}
	for _, path := range []string{
		"/v1/orders", "/orders", "/v1/orders/{id}", "/v1/orders/{id}/transitions", "/v1/orders/counts",
		"/v1/events", "/v1/track/{token}", "/track/{token}/events", "/v1/me",
		"/v1/orders/{id}/reassign", "/v1/orders/{id}/delivery-code/reset", "/v1/reports/day.csv",
	} {
		if doc.Paths[path] == nil || !strings.Contains(page, path) {
			t.Errorf("%s is not documented", path)
		}
		for method, op := range doc.Paths[path] {
			if open := op.Security != nil && len(*op.Security) == 0; open != strings.Contains(path, "track") {
				t.Errorf("%s %s is documented as open: %v", method, path, open)
			}
		}
	}
}

// A stream on a connection that served a bounded request before must not
// inherit that request's deadline.
func TestAStreamOutlivesTheDeadlinesOfRequests(t *testing.T) {
	t.Parallel()
	const timeout = 100 * time.Millisecond // bounded answers get three times this
	m := newBed(t, func(d *api.Deps, c *api.Config) {
		c.RequestTimeout = timeout
		d.Streams = slow(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			for i := range 5 {
				if _, err := fmt.Fprintf(w, "data: %d\n\n", i); err != nil || rc.Flush() != nil {
					return
				}
				select { // the passing of time is what is tried here
				case <-r.Context().Done():
					return
				case <-time.After(timeout):
				}
			}
		})
	}).merchant(t, "Padaria")
	m.ask(t, "GET", "/v1/me", "")
	if a := m.ask(t, "GET", "/v1/events", ""); !strings.HasSuffix(string(a.body), "data: 4\n\n") {
		t.Errorf("cut off after %q", a.body)
	}
}

func TestAnOpenStreamHoldsNoSlot(t *testing.T) {
	t.Parallel()
	open, end := make(chan struct{}), make(chan struct{})
	m := newBed(t, func(d *api.Deps, c *api.Config) {
		c.MaxInFlight = 1
		d.Streams = slow(func(http.ResponseWriter, *http.Request) {
			open <- struct{}{}
			<-end
		})
	}).merchant(t, "Padaria")
	done := make(chan answer)
	go func() { done <- m.ask(t, "GET", "/v1/events", "") }()
	<-open
	m.ask(t, "GET", "/v1/me", "").into(t, http.StatusOK, new(map[string]string))
	close(end)
	<-done
}

type slow func(w http.ResponseWriter, r *http.Request)

func (s slow) Serve(w http.ResponseWriter, r *http.Request, _ string) { s(w, r) }
