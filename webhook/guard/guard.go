// Package guard makes an HTTP client for addresses that strangers chose.
//
// It promises that no connection is made to anything but a public address: the
// address is judged where the socket is about to connect, after the name was
// resolved, so that a name that resolves to something else the second time gains
// nothing. Redirects are not followed, proxies of the environment not used, and
// no answer is read past [MaxAnswer] bytes.
//
// It does not know of private networks that use public addresses: give those to
// Config.Deny, or run the sender where it cannot reach them.
package guard

import (
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
)

// MaxAnswer is how much of an answer is read, in bytes; of its headers as much.
const MaxAnswer = 16 << 10

// Config of a Guard. Its zero value lets through https to public addresses.
type Config struct {
	// Allow are networks that are let through whatever they are, and by http
	// too: for development (127.0.0.1/32), or receivers on one's own network.
	Allow []netip.Prefix
	// Deny are networks that are refused beside those that always are. Of a network
	// in both the narrower decides, Allow where they are the same.
	Deny []netip.Prefix
	// HTTP lets http through to public addresses too. Bodies then travel in the
	// clear.
	HTTP bool
	// Resolver finds addresses; nil is the system's.
	Resolver *net.Resolver
	// RootCAs are who certificates are trusted of; nil is the system's.
	RootCAs *x509.CertPool
	// IdleConns are kept open at most, and of them IdlePerHost to one host;
	// default 2048 and 32.
	IdleConns, IdlePerHost int
}

// Guard judges addresses and makes clients that reach no others.
type Guard struct{ cfg Config }

// New makes a guard.
func New(cfg Config) *Guard {
	if cfg.IdleConns <= 0 {
		cfg.IdleConns = 2048
	}
	if cfg.IdlePerHost <= 0 {
		cfg.IdlePerHost = 32
	}
	return &Guard{cfg}
}

// RefusedError is an address or URL that is not let through.
type RefusedError struct {
	Address string // "" where it may hold a secret
	Why     string
}

func (e *RefusedError) Error() string {
	if e.Address == "" {
		return "refused: " + e.Why
	}
	return "refused to connect to " + e.Address + ": " + e.Why
}

// Refused tells an error of this package's refusing from others.
func Refused(err error) bool {
	var r *RefusedError
	return errors.As(err, &r)
}
