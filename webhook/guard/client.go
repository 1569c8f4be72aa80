package guard

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Client makes a client with connections of its own. It has no timeout: give
// each request a context with a deadline, which covers all of it, from the look
// at the name to the last byte of the answer.
//
// Close its idle connections when it is done with.
func (g *Guard) Client() *http.Client {
	dialer := &net.Dialer{Resolver: g.cfg.Resolver, ControlContext: g.control, KeepAlive: 30 * time.Second}
	return &http.Client{
		Transport: &transport{&http.Transport{
			// No Proxy: one of the environment would connect on our behalf to
			// what is refused here.
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: g.cfg.RootCAs},
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns:        g.cfg.IdleConns,
			MaxIdleConnsPerHost: g.cfg.IdlePerHost,
			IdleConnTimeout:     90 * time.Second,
			// A small answer may grow a thousandfold when it is unpacked.
			DisableCompression:     true,
			MaxResponseHeaderBytes: MaxAnswer,
			// HTTP/1.1 alone: a stalled stream must not stand before others.
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport tells the dialer what it dials for, and cuts answers off.
type transport struct{ *http.Transport }

type plainKey struct{}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" {
		req = req.WithContext(context.WithValue(req.Context(), plainKey{}, true))
	}
	resp, err := t.Transport.RoundTrip(req)
	if err == nil {
		resp.Body = &answer{io.LimitReader(resp.Body, MaxAnswer), resp.Body}
	}
	return resp, err
}

// answer ends after MaxAnswer bytes. A connection with more in it is closed.
type answer struct {
	io.Reader
	io.Closer
}

// control is asked for each address a name has resolved to, when its socket is
// there and not yet connected. What it refuses, the next address may follow.
func (g *Guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedError{address, "it cannot be read"}
	}
	if ctx.Value(plainKey{}) != nil && !g.cfg.HTTP && !g.allowed(ap.Addr()) {
		return &RefusedError{address, "it is called by http; use https"}
	}
	return g.CheckAddr(ap)
}
