package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/api"
)

// say sends raw bytes on a connection of its own.
func (b *bed) say(t *testing.T, text string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// Whoever announces a body and sends none must not keep a connection for ever,
// whatever was asked for.
func TestABodyThatDoesNotComeEndsItsConnection(t *testing.T) {
	t.Parallel()
	m := newBed(t, func(_ *api.Deps, c *api.Config) { c.RequestTimeout = 2 * time.Second }).merchant(t, "Padaria")
	o := m.create(t)
	conns := map[string]net.Conn{}
	for _, line := range []string{
		"POST /nothing", "DELETE /v1/orders", "POST /v1/orders", "GET /healthz", "GET /v1/events",
		"GET /track/" + strings.Repeat("x", 32) + "/events", "GET /track/" + o.TrackingToken + "/events", "HEAD /v1/events",
	} {
		for _, body := range []string{"Content-Length: 1000", "Transfer-Encoding: chunked"} {
			conns[line+" with "+body] = m.say(t, line+" HTTP/1.1\r\nHost: x\r\n"+body+"\r\n\r\n")
		}
	}
	for what, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s keeps its connection", what)
		}
	}
}

func TestAStreamTakesNoBody(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	m.ask(t, "GET", "/v1/events", "{}").problem(t, http.StatusBadRequest)
}

// The deadline of an answer must not outlive it: the next request on the
// connection may be one that the router has no route for.
func TestAnAnswersDeadlineIsItsOwn(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(_ *api.Deps, c *api.Config) { c.RequestTimeout = 300 * time.Millisecond })
	c := b.say(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	r := bufio.NewReader(c)
	read := func() (int, error) {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return 0, err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	if got, err := read(); got != http.StatusOK || err != nil {
		t.Fatal(got, err)
	}
	select { // the passing of time is what is tried here
	case <-time.After(1200 * time.Millisecond): // bounded answers get three times the timeout
	case <-t.Context().Done():
	}
	if _, err := io.WriteString(c, "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := read(); got != http.StatusNotFound || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

// One merchant, or the public, must not take the room of all.
func TestOneCallerTakesAShareOfTheSlots(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	b := newBed(t, withCounts(func(context.Context) (map[string]int64, error) {
		entered <- struct{}{}
		<-leave
		return nil, nil
	}), func(_ *api.Deps, c *api.Config) { c.MaxInFlight = 8 })
	greedy, other := b.merchant(t, "Padaria"), b.merchant(t, "Farmácia")
	o := other.create(t)
	done := make(chan answer)
	for range 2 {
		go func() { done <- greedy.ask(t, "GET", "/v1/orders/counts", "") }()
		<-entered
	}
	a := greedy.ask(t, "GET", "/v1/me", "")
	a.problem(t, http.StatusTooManyRequests)
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	other.ask(t, "GET", "/v1/me", "").into(t, http.StatusOK, new(map[string]string))
	if a := other.bed.ask(t, "GET", "/v1/track/"+o.TrackingToken, ""); a.status != http.StatusOK {
		t.Errorf("the public: %d", a.status)
	}
	close(leave)
	for range 2 {
		if a := <-done; a.status != http.StatusOK {
			t.Errorf("in a slot: %d", a.status)
		}
	}
	greedy.ask(t, "GET", "/v1/me", "").into(t, http.StatusOK, new(map[string]string))
}

// Anybody may ask; what it asks in turn must not multiply.
func TestAskingForReadinessAsksOneAtATime(t *testing.T) {
	t.Parallel()
	var asking, most atomic.Int32
	b := newBed(t, func(d *api.Deps, _ *api.Config) {
		d.Ready = []api.Check{{Name: "broker", Ask: func(context.Context) error {
			n := asking.Add(1)
			defer asking.Add(-1)
			if n > most.Load() {
				most.Store(n)
			}
			<-time.After(20 * time.Millisecond) // in which the others come
			return nil
		}}}
	})
	done := make(chan int)
	for range 20 {
		go func() { done <- b.ask(t, "GET", "/readyz", "").status }()
	}
	for range 20 {
		if got := <-done; got != http.StatusOK {
			t.Errorf("status %d", got)
		}
	}
	if n := most.Load(); n != 1 {
		t.Errorf("asked %d times at once", n)
	}
}

// A page of another site whose name was made to resolve to here reads whatever
// asks for no key; and so does whoever comes through a proxy on this machine.
func TestMetricsAreForThisMachinesNamesOnly(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for host, want := range map[string]int{
		"evil.example": 404, "evil.example:8080": 404, "localhost": 200, "127.0.0.1:1": 200, "[::1]:80": 200, "x.localhost": 200,
	} {
		c := b.say(t, fmt.Sprintf("GET /metrics HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, resp.StatusCode, want)
		}
	}
}

func TestTextThatIsNoUTF8IsRefused(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	for _, text := range []string{"Caf\xff", "Caf\xc3"} {
		m.ask(t, "POST", "/v1/orders", with("Café", text)).problem(t, http.StatusBadRequest)
	}
}

func TestAnEmptyIdempotencyKeyIsNoPromise(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	m.ask(t, "POST", "/v1/orders", orderBody, "Idempotency-Key", "").problem(t, http.StatusUnprocessableEntity)
}

// What a client sends as its trace becomes a header of every event that
// follows from its request.
func TestATraceThatIsNoneIsNotPassedOn(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	zeros, trace, span := strings.Repeat("0", 32), strings.Repeat("4b", 16), strings.Repeat("00f0", 4)
	good := "00-" + trace + "-" + span + "-01"
	for _, parent := range []string{
		"00-" + zeros + "-" + span + "-01", "00-" + trace + "-" + zeros[:16] + "-01", "ff-" + trace + "-" + span + "-01",
		"00-" + strings.ToUpper(trace) + "-" + span + "-01", good + "-x", "x", good,
	} {
		if a := m.ask(t, "POST", "/v1/orders", orderBody, "Traceparent", parent); a.status != http.StatusCreated {
			t.Errorf("%s: %d", parent, a.status)
		}
	}
	rows, err := m.pool.Query(t.Context(), `SELECT DISTINCT trace_parent FROM waybill.outbox_events ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || strings.Join(got, " ") != " "+good {
		t.Errorf("events carry %q, %v", got, err)
	}
}

// A merchant that sends more than its share is told when to come back; another
// one is not.
func TestAHastyMerchantIsPacedAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(_ *api.Deps, c *api.Config) { c.Rate, c.Burst = 0.01, 3 })
	hasty, calm := b.merchant(t, "Padaria"), b.merchant(t, "Farmácia")
	for range 3 {
		hasty.ask(t, "GET", "/v1/me", "").into(t, http.StatusOK, new(map[string]string))
	}
	a := hasty.ask(t, "POST", "/v1/orders", orderBody)
	a.problem(t, http.StatusTooManyRequests)
	if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 1 || after > 100 {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	calm.create(t)
}
