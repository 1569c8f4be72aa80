package guard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

func client(t *testing.T, cfg Config) *http.Client {
	t.Helper()
	c := New(cfg).Client()
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// call gives the whole answer, within a time.
func call(t *testing.T, c *http.Client, url string, within time.Duration) (status int, body string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

const patience = time.Minute

// names answers the question for any name with the address it is told, and
// counts how often it was asked.
type names struct {
	conn  net.PacketConn
	asked atomic.Int64
	of    func(nth int64) [4]byte
}

func newNames(t *testing.T, of func(nth int64) [4]byte) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn, of: of}
	done := make(chan struct{})
	go func() { defer close(done); n.serve() }()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return n
}

func (n *names) serve() {
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Header = dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}
		m.Additionals = nil
		if q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: n.of(n.asked.Add(1))},
			}}
		}
		if out, err := m.Pack(); err == nil {
			_, _ = n.conn.WriteTo(out, from)
		}
	}
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

// A name that is public when it is added and private when it is called: there is
// one look only, and what it found is what is judged and connected to.
func TestANameThatChangesItsMindGainsNothing(t *testing.T) {
	hits := atomic.Int64{}
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(inner.Close)
	_, port, _ := net.SplitHostPort(inner.Listener.Addr().String())
	n := newNames(t, func(nth int64) [4]byte {
		if nth == 1 {
			return [4]byte{8, 8, 8, 8}
		}
		return [4]byte{127, 0, 0, 1}
	})
	addrs, err := n.resolver().LookupNetIP(t.Context(), "ip4", "rebind.example.")
	if err != nil || len(addrs) != 1 || addrs[0] != netip.MustParseAddr("8.8.8.8") {
		t.Fatalf("%v, %v: the name is to look well at first", addrs, err)
	}
	c := client(t, Config{HTTP: true, Resolver: n.resolver()})
	for range 3 {
		if _, _, err := call(t, c, "http://rebind.example.:"+port+"/", patience); !Refused(err) {
			t.Errorf("%v, want it refused", err)
		}
	}
	if hits.Load() != 0 {
		t.Error("the inner server was called")
	}
	// The same, were it allowed: so the refusal is the guard's.
	c = client(t, Config{Allow: loopback, Resolver: n.resolver()})
	if status, _, err := call(t, c, "http://rebind.example.:"+port+"/", patience); err != nil || status != 200 || hits.Load() != 1 {
		t.Errorf("%d, %v", status, err)
	}
}

func TestPlainHTTPReachesAllowedNetworksOnly(t *testing.T) {
	n := newNames(t, func(int64) [4]byte { return [4]byte{8, 8, 8, 8} })
	c := client(t, Config{Allow: loopback, Resolver: n.resolver()})
	if _, _, err := call(t, c, "http://public.example./", patience); !Refused(err) || !strings.Contains(err.Error(), "https") {
		t.Errorf("%v", err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	hits := atomic.Int64{}
	mux := http.NewServeMux()
	mux.Handle("/meta", http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect))
	mux.Handle("/here", http.RedirectHandler("/inner", http.StatusPermanentRedirect))
	mux.HandleFunc("/inner", func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	c := client(t, Config{Allow: loopback})
	for path, want := range map[string]int{"/meta": 307, "/here": 308} {
		if status, _, err := call(t, c, srv.URL+path, patience); err != nil || status != want {
			t.Errorf("%s: %d, %v", path, status, err)
		}
	}
	if hits.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestAProxyOfTheEnvironmentIsNotAsked(t *testing.T) {
	hits := atomic.Int64{}
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	n := newNames(t, func(int64) [4]byte { return [4]byte{10, 0, 0, 1} })
	c := client(t, Config{HTTP: true, Resolver: n.resolver()})
	if _, _, err := call(t, c, "http://inner.example./", patience); !Refused(err) || hits.Load() != 0 {
		t.Errorf("%v, proxy asked %d times", err, hits.Load())
	}
}

func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		for chunk := []byte(strings.Repeat("x", 4096)); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	status, body, err := call(t, client(t, Config{Allow: loopback}), srv.URL, patience)
	if err != nil || status != 200 || len(body) != MaxAnswer {
		t.Errorf("%d, %d bytes, %v", status, len(body), err)
	}
	select {
	case <-gone: // its connection was closed
	case <-time.After(patience):
		t.Error("the connection stays open")
	}
}

// raw is a server that does as it likes with a connection, until the test ends.
func raw(t *testing.T, serve func(net.Conn, <-chan struct{})) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096)) // the request
			serve(conn, end)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { close(end); _ = l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func TestHeadersWithoutEndAreRefused(t *testing.T) {
	url := raw(t, func(c net.Conn, _ <-chan struct{}) {
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n"))
		for {
			if _, err := c.Write([]byte("X-A: " + strings.Repeat("b", 1000) + "\r\n")); err != nil {
				return
			}
		}
	})
	if _, _, err := call(t, client(t, Config{Allow: loopback}), url, patience); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestTheDeadlineCoversNameHeadersAndBody(t *testing.T) {
	slowly := func(first string) string {
		return raw(t, func(c net.Conn, end <-chan struct{}) {
			_, _ = c.Write([]byte(first))
			for { // a byte now and then: no pause is long
				select {
				case <-end:
					return
				case <-time.After(10 * time.Millisecond):
				}
				if _, err := c.Write([]byte("a")); err != nil {
					return
				}
			}
		})
	}
	mute, err := net.ListenPacket("udp", "127.0.0.1:0") // a name server that does not answer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	var mu sync.Mutex
	var waiting []net.Conn // for longer than the call: a look at a name is not broken off
	silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(waiting) == 2 { // for the two kinds of address
			return nil, errors.New("asked already")
		}
		var d net.Dialer
		c, err := d.DialContext(ctx, "udp", mute.LocalAddr().String())
		waiting = append(waiting, c)
		return c, err
	}}
	for what, url := range map[string]string{
		"headers": slowly("HTTP/1.1 200 OK\r\nX-Slow: "),
		"body":    slowly("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n"),
		"nothing": raw(t, func(_ net.Conn, end <-chan struct{}) { <-end }),
		"name":    "http://slow.example./",
	} {
		c := client(t, Config{Allow: loopback, HTTP: true})
		if what == "name" {
			c = client(t, Config{HTTP: true, Resolver: silent})
		}
		if _, _, err := call(t, c, url, 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
			t.Errorf("%s: %v, want the deadline", what, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, c := range waiting {
		_ = c.Close()
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestCertificatesAreVerified(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	if status, _, err := call(t, client(t, Config{Allow: loopback, RootCAs: roots}), srv.URL, patience); err != nil || status != 200 {
		t.Errorf("%d, %v", status, err)
	}
	var unknown *tls.CertificateVerificationError
	if _, _, err := call(t, client(t, Config{Allow: loopback}), srv.URL, patience); !errors.As(err, &unknown) {
		t.Errorf("an unknown authority: %v", err)
	}
	n := newNames(t, func(int64) [4]byte { return [4]byte{127, 0, 0, 1} })
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	c := client(t, Config{Allow: loopback, RootCAs: roots, Resolver: n.resolver()})
	if _, _, err := call(t, c, "https://other.test.:"+port+"/", patience); !errors.As(err, &unknown) {
		t.Errorf("another name: %v", err)
	}
	old := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	old.Config.ErrorLog = log.New(io.Discard, "", 0)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	t.Cleanup(old.Close)
	if _, _, err := call(t, client(t, Config{Allow: loopback, RootCAs: roots}), old.URL, patience); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

func TestConnectionsAreKept(t *testing.T) {
	var made atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	c := client(t, Config{Allow: loopback})
	for range 10 {
		if _, _, err := call(t, c, srv.URL, patience); err != nil {
			t.Fatal(err)
		}
	}
	if made.Load() != 1 {
		t.Errorf("%d connections for 10 calls in turn", made.Load())
	}
}
