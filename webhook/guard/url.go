package guard

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxURL is how long a URL may be, in bytes.
const maxURL = 2048

// CheckURL reads a URL that somebody wants to be called at. What it lets through
// may still be refused at every connection, as names resolve to what they like;
// what it refuses could not have been called, but for one thing: a port below 1024
// of this machine by a name that is not localhost. The error is a [RefusedError]
// and does not quote the URL, whose path may be a secret.
func (g *Guard) CheckURL(raw string) (*url.URL, error) {
	refuse := func(why string) (*url.URL, error) { return nil, &RefusedError{"", why} }
	if len(raw) > maxURL {
		return refuse("the URL is longer than " + strconv.Itoa(maxURL) + " bytes")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return refuse("that is no URL such as https://example.com/hook")
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse("the URL's scheme is neither https nor http")
	case u.User != nil:
		return refuse("the URL has a user name or password; receivers verify the signature instead")
	case u.Fragment != "":
		return refuse("the URL has a fragment (#), which is not sent")
	}
	port, ok := portOf(u)
	if !ok {
		return refuse("the URL's port is none")
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return u, g.checkName(u, port)
	}
	if err := g.CheckAddr(netip.AddrPortFrom(addr, port)); err != nil {
		return nil, err
	}
	if u.Scheme == "http" && !g.cfg.HTTP && !g.allowed(addr) {
		return refuse("the URL is http; use https")
	}
	return u, nil
}

// checkName judges a URL with a name for a host.
func (g *Guard) checkName(u *url.URL, port uint16) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	// What resolvers of some systems read as an IPv4 address: 127.1, 0x7f.0.0.1,
	// 2130706433. They would be judged when they are connected to; told here, it
	// is understood.
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || last == "" {
		return &RefusedError{"", "the URL's host is neither a name nor an address as usually written"}
	}
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	if local && len(g.cfg.Allow) == 0 {
		return &RefusedError{"", "the URL's host is this machine"}
	}
	// Whether a name is of an allowed network is not known yet; that http leads
	// nowhere else is seen to when it connects.
	if u.Scheme == "http" && !g.cfg.HTTP && len(g.cfg.Allow) == 0 {
		return &RefusedError{"", "the URL is http; use https"}
	}
	if othersPort(port) && !g.mayBeAllowed(local) {
		return &RefusedError{"", "the URL's " + whyPort}
	}
	return nil
}

// mayBeAllowed tells whether a name may be of a network that is let through. Where
// those are this machine's alone, as for development, only its own names are: a
// name of elsewhere is judged as if nothing were allowed.
func (g *Guard) mayBeAllowed(local bool) bool {
	return slices.ContainsFunc(g.cfg.Allow, func(p netip.Prefix) bool {
		return local || !plain(p).Masked().Addr().IsLoopback()
	})
}

func portOf(u *url.URL) (uint16, bool) {
	switch {
	case u.Port() != "":
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		return uint16(n), err == nil && n > 0
	case strings.HasSuffix(u.Host, ":"):
		return 0, false
	case u.Scheme == "http":
		return 80, true
	}
	return 443, true
}
