package push_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/push"
)

// Over HTTP/2, which net/http keeps, a stream is the same.
func TestAStreamOverHTTP2IsTheSame(t *testing.T) {
	w := newWorld(t, 2)
	s := w.site(t, nil)
	srv := httptest.NewUnstartedServer(handler(s.Hub))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"?channel=a", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	c := streamOf(t, res, cancel)
	if res.ProtoMajor != 2 {
		t.Fatalf("HTTP/%d: this showed nothing", res.ProtoMajor)
	}
	if m := c.next(); m.event != push.EventReady {
		t.Fatalf("opened with %q", m.event)
	}
	for n := 1; n <= 5; n++ {
		w.say(t, "a", "k", n)
	}
	c.want("k", 1, 5)
	s.stop()
	c.rest()
}

// Somebody who reads nothing for a while and then all gets all, and is written
// to as before: messages that fit into one write, and some that do not.
func TestWhoReadsLateMissesNothing(t *testing.T) {
	const many = 120
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) { c.WriteTimeout = time.Minute })
	raw := s.dial(t, "late")
	c := s.read(t, raw)
	c.next()
	sent, pad := 0, strings.Repeat("x", 100_000)
	other, _ := s.fresh(t, "other")
	for sent < many {
		sent++
		w.publish(t, w.record("late", thing{Key: "k", N: sent, Pad: pad[:1000+99_000*(sent%2)]}))
	}
	w.say(t, "other", "o", 1)
	other.want("o", 1, 1) // the hub has read all by now
	c.want("k", 1, many)
	for n := many + 1; n <= many+20; n++ {
		w.say(t, "late", "k", n)
		c.want("k", n, n)
	}
}

// A client that goes leaves its place at once, not with the next heartbeat.
func TestWhoGoesLeavesItsPlace(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) { c.MaxPerChannel = 1 })
	deadline := time.Now().Add(patience)
	for taken := 0; taken < 20; {
		c := s.get(t, "a", "")
		if c.res.StatusCode == http.StatusOK {
			c.next()
			taken++
		}
		c.close()
		if time.Now().After(deadline) {
			t.Fatal("its place is still taken")
		}
	}
}

// A client that sends on after its request is none, and is let go.
func TestWhoTalksOnIsLetGo(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, nil)
	c := s.dial(t, "a")
	s.read(t, c).next()
	if _, err := c.Write(bytes.Repeat([]byte("more "), 100)); err != nil {
		t.Fatal(err)
	}
	drain(t, c)
}
