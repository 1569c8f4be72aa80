package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/proc"
)

// writeTimeout is how long the hub waits for one client that does not read,
// and so how late another hears if it waits for that one.
const writeTimeout = 10 * time.Second

// Clients that never read hold up nobody: while more is said than their
// connections can hold, another client hears all of it, and they are cut off.
func TestClientsThatDoNotReadDelayNoOther(t *testing.T) {
	w := proc.Up(t)
	// A machine with other things to do may be late by itself, but not each time.
	for late := time.Now().Add(5 * time.Minute); ; {
		lag := lagBesideTheDeaf(t, w)
		if lag < writeTimeout {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("each time the last was heard late, now %v after it was answered", lag)
		}
	}
}

// lagBesideTheDeaf is how long after its answer the last of many orders is
// heard by a client beside which others do not read.
func lagBesideTheDeaf(t *testing.T, w *proc.Waybill) time.Duration {
	t.Helper()
	const orders, deaf = 1000, 5
	for range deaf {
		deafClient(t, w)
	}
	s := follow(t, w, w.DemoKey, "/v1/events", "")
	if n := connections(t, w); n != strconv.Itoa(deaf+1) {
		t.Fatalf("%s connections", n)
	}
	said := sell(t, w, orders)
	heard := map[string]bool{}
	for len(heard) < orders {
		m, open := s.nextUnlessOver()
		if !open { // this machine was too slow to read; it goes on, as a browser does
			s = follow(t, w, w.DemoKey, "/v1/events", s.last)
			continue
		}
		heard[m.Data.Subject] = true
	}
	lag := time.Since(<-said)
	eventually(t, "those that do not read are cut off", func() bool { return connections(t, w) == "1" })
	s.close()
	eventually(t, "nobody is left", func() bool { return connections(t, w) == "0" })
	return lag
}

// deafClient asks for the events and reads no more than the answer's first
// byte, through a small window.
func deafClient(t *testing.T, w *proc.Waybill) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.HTTP, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", w.DemoKey)
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// connections is how many streams the program holds open, by its own metrics.
func connections(t *testing.T, w *proc.Waybill) string {
	t.Helper()
	_, page, err := w.Request(t.Context(), http.MethodGet, "/metrics", "")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if n, found := strings.CutPrefix(line, "waybill_push_connections "); found {
			return strings.TrimSpace(n)
		}
	}
	t.Fatal("no metric of the connections")
	return ""
}

// sell makes n large orders at once and tells when the last was answered.
func sell(t *testing.T, w *proc.Waybill, n int) <-chan time.Time {
	body := strings.Replace(proc.Order, `"items":[`, `"items":[`+strings.Repeat(`{"name":"`+strings.Repeat("x", 110)+`","quantity":1,"unit_price":1},`, 90), 1)
	todo, last := make(chan struct{}, n), make(chan time.Time, 1)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	var clerks sync.WaitGroup
	for range 8 {
		clerks.Go(func() {
			for range todo {
				if status, b, err := w.Request(t.Context(), http.MethodPost, "/v1/orders", body); err != nil || status != http.StatusCreated {
					t.Errorf("create: %d %v %.200s", status, err, b)
				}
			}
		})
	}
	go func() {
		clerks.Wait()
		last <- time.Now()
	}()
	return last
}
