package push_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/push"
	"github.com/waybillhq/waybill/test/browser"
)

// house serves the module, a page that runs it, and the streams of a hub that can
// be exchanged, cut off and refused.
type house struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	hub     *push.Hub
	refuse  int // the status of streams, while it is set
	conns   map[net.Conn]bool
	streams int           // that were asked for
	held    chan struct{} // answers /held
}

func newHouse(t *testing.T, hub *push.Hub) *house {
	t.Helper()
	h := &house{t: t, hub: hub, conns: map[net.Conn]bool{}, held: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><link rel="icon" href="data:,"><title>x</title>`)
	})
	mux.HandleFunc("GET /sse.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(push.ClientJS)
	})
	mux.HandleFunc("GET /held", func(http.ResponseWriter, *http.Request) { <-h.held })
	mux.HandleFunc("GET /stream", h.stream)
	srv := httptest.NewUnstartedServer(mux)
	srv.Listener = &counted{srv.Listener, h}
	srv.Start()
	t.Cleanup(func() { h.cut(); srv.Close() })
	h.url = srv.URL
	return h
}

func (h *house) stream(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	hub, refuse := h.hub, h.refuse
	h.streams++
	h.mu.Unlock()
	if refuse != 0 {
		w.WriteHeader(refuse)
		return
	}
	hub.Serve(w, r, r.URL.Query().Get("channel"))
}

func (h *house) with(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// counted keeps hold of connections, also of those that leave net/http.
type counted struct {
	net.Listener
	house *house
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.house.with(func() { c.house.conns[conn] = true })
	}
	return conn, err
}

// cut ends all connections as a killed server does: in the midst of whatever they
// carry.
func (h *house) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
		delete(h.conns, c)
	}
}

// visit opens the page and has it follow channel by a transport.
func (h *house) visit(transport, channel string) context.Context {
	h.t.Helper()
	page := browser.New(h.t)
	for _, noise := range []string{"ERR_", "status of 503", "status of 401", "WebSocket connection to"} {
		browser.Allow(page, noise) // a browser logs every request that fails
	}
	browser.Open(page, h.t, h.url)
	browser.Eval[bool](page, h.t, fmt.Sprintf(`import("/sse.js").then(({subscribe}) => {
		Object.assign(window, {got: [], resets: [], states: [], sockets: 0, refused: 0});
		const Own = WebSocket;
		window.WebSocket = class extends Own { constructor(...a) { super(...a); window.sockets++; } };
		window.stop = new AbortController();
		subscribe({
			url: "/stream?channel=%s", transport: %q, headers: {Authorization: "Bearer secret"}, signal: stop.signal, maxDelay: 3600_000,
			onEvent: ({data}) => got.push([data.data.key, data.data.n]),
			onReset: (kind) => resets.push(kind), onState: (state) => states.push(state),
		}).catch((e) => { window.refused = e.status; });
		return true;
	})`, channel, transport))
	browser.Until[bool](page, h.t, `resets.includes("ready")`)
	return page
}

// wantOnce demands events from..to of one key, once each and in their order.
func (h *house) wantOnce(page context.Context, key string, to int) {
	h.t.Helper()
	browser.Until[bool](page, h.t, fmt.Sprintf(`got.some(([k, n]) => k === %q && n === %d)`, key, to))
	got := browser.Eval[[]int](page, h.t, fmt.Sprintf(`got.filter(([k]) => k === %q).map(([, n]) => n)`, key))
	for i, n := range got {
		if n != i+1 {
			h.t.Fatalf("%s: event %d came as number %d of %d: %v", key, n, i+1, len(got), got)
		}
	}
	if len(got) != to {
		h.t.Errorf("%s: %d events, want %d", key, len(got), to)
	}
}

var transports = []string{"sse", "websocket"}

// The connection is cut and hubs are exchanged at random points, while events are
// published: on the page each is once.
func TestAPageShowsEachEventOnceWhateverBreaks(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t, 2)
			s := w.site(t, quick)
			h := newHouse(t, s.Hub)
			page := h.visit(transport, "a")
			n := 0
			for range 5 {
				for range 20 + rand.IntN(20) {
					n++
					w.say(t, "a", "k", n)
				}
				h.cut()
				next := w.site(t, quick)
				h.with(func() { h.hub = next.Hub })
				s.stop()
				s = next
				n++
				w.say(t, "a", "k", n)
			}
			h.wantOnce(page, "k", n)
			if got := browser.Eval[string](page, t, `resets.join()`); got != "ready" {
				t.Errorf("told to load: %s", got)
			}
			if sockets := browser.Eval[int](page, t, `sockets`); (sockets > 1) != (transport == "websocket") {
				t.Errorf("%d WebSockets", sockets)
			}
			browser.Eval[bool](page, t, `stop.abort() || true`)
			browser.Until[bool](page, t, `states.at(-1) === "closed"`)
		})
	}
}

func quick(c *push.Config) { c.Retry = 10 * time.Millisecond }

// What cannot be resumed is told; what cannot be had any more ends.
func TestAPageIsToldWhatItMissedAndWhenItIsRefused(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t, 1)
			s := w.site(t, func(c *push.Config) { quick(c); c.Tail = 10 })
			h := newHouse(t, s.Hub)
			page := h.visit(transport, "a")
			h.with(func() { h.refuse = http.StatusServiceUnavailable })
			h.cut()
			browser.Until[bool](page, t, `states.at(-1) === "waiting"`)
			for n := 1; n <= 30; n++ {
				w.say(t, "a", "old", n)
			}
			h.with(func() { h.refuse = 0 })
			browser.Until[bool](page, t, `resets.join() === "ready,reset"`)
			w.say(t, "a", "k", 1)
			h.wantOnce(page, "k", 1)

			h.with(func() { h.refuse = http.StatusUnauthorized })
			h.cut()
			browser.Until[bool](page, t, `refused === 401 && states.at(-1) === "closed"`)
		})
	}
}

// A page that does not read for a while is let go, and has everything afterwards.
func TestAPageThatWasTooSlowCatchesUp(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t, 1)
			reg := prometheus.NewRegistry()
			s := w.site(t, func(c *push.Config) {
				quick(c)
				c.Registerer, c.Buffer, c.TailBytes, c.WriteTimeout = reg, 16, 1<<30, time.Hour
			})
			h := newHouse(t, s.Hub)
			page := h.visit(transport, "a")
			browser.Eval[bool](page, t, `setTimeout(() => {
				const held = new XMLHttpRequest();
				held.open("GET", "/held", false); // all of the page waits
				held.send();
			}) > 0`)
			n := 0
			for ; metric(t, reg, "waybill_push_evictions_total") == 0; n++ {
				if n > 2000 {
					t.Fatal("it is kept")
				}
				w.publish(t, w.record("a", thing{Key: "k", N: n + 1, Pad: strings.Repeat("x", 60_000)}))
			}
			close(h.held)
			w.say(t, "a", "k", n+1)
			h.wantOnce(page, "k", n+1)
		})
	}
}

// A page that waits comes back when the network does, and when somebody looks at
// it again; and gives up a connection from before the network went, which may
// have died without a word.
func TestAPageComesBackWithTheNetworkAndWhoLooksAtIt(t *testing.T) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t, 1)
			s := w.site(t, func(c *push.Config) { c.Retry = time.Hour })
			h := newHouse(t, s.Hub)
			page := h.visit(transport, "a")
			for n, back := range []string{
				`dispatchEvent(new Event("online"))`,
				`document.dispatchEvent(new Event("visibilitychange"))`,
			} {
				h.cut()
				browser.Until[bool](page, t, `states.at(-1) === "waiting"`)
				w.say(t, "a", "k", n+1)
				browser.Eval[bool](page, t, back)
				h.wantOnce(page, "k", n+1)
			}
			asked := 0
			h.with(func() { asked = h.streams })
			browser.Eval[bool](page, t, `dispatchEvent(new Event("offline")) && dispatchEvent(new Event("online"))`)
			browser.Until[bool](page, t, `states.at(-1) === "waiting"`)
			browser.Eval[bool](page, t, `dispatchEvent(new Event("online"))`)
			w.say(t, "a", "k", 3)
			h.wantOnce(page, "k", 3)
			h.with(func() {
				if h.streams <= asked {
					t.Error("it kept its connection")
				}
			})
		})
	}
}
