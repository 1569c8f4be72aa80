package guard

import (
	"net/netip"
)

// reserved are the networks that are never let through unless Config.Allow has
// them, with what they are. From the registries of IANA for special-purpose
// addresses, and the metadata services that stand outside of them.
//
//nolint:gochecknoglobals // a table
var reserved = func() (out []network) {
	for _, n := range []struct{ prefix, what string }{
		{"0.0.0.0/8", "this network"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "shared by a carrier's customers"},
		{"127.0.0.0/8", "loopback"},
		{"168.63.129.16/32", "a cloud's metadata service"},
		{"169.254.0.0/16", "link-local, where clouds have their metadata"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "for protocols"},
		{"192.0.2.0/24", "for documentation"},
		{"192.31.196.0/24", "AS112"},
		{"192.52.193.0/24", "AMT"},
		{"192.88.99.0/24", "6to4 relays"},
		{"192.168.0.0/16", "private"},
		{"192.175.48.0/24", "AS112"},
		{"198.18.0.0/15", "for benchmarks"},
		{"198.51.100.0/24", "for documentation"},
		{"203.0.113.0/24", "for documentation"},
		{"224.0.0.0/4", "multicast"},
		{"240.0.0.0/4", "reserved, or broadcast"},
		// Of IPv6 only 2000::/3 is anybody's; see public. Within it:
		{"2001::/23", "for protocols, Teredo among them"},
		{"2001:db8::/32", "for documentation"},
		{"2002::/16", "6to4, which leads to any IPv4 address"},
		{"2620:4f:8000::/48", "AS112"},
		{"3fff::/20", "for documentation"},
	} {
		out = append(out, network{netip.MustParsePrefix(n.prefix), n.what})
	}
	return out
}()

type network struct {
	netip.Prefix
	what string
}

// global is the part of IPv6 that is given to anybody: what is not in it is
// loopback, link-local, unique-local, multicast, an IPv4 address in disguise
// (::a.b.c.d, 64:ff9b::/96, 64:ff9b:1::/48), or not in use.
//
//nolint:gochecknoglobals // a constant
var global = netip.MustParsePrefix("2000::/3")

// CheckAddr refuses what is no public address, and ports that belong to other
// services than HTTP. The error is a [RefusedError].
func (g *Guard) CheckAddr(ap netip.AddrPort) error {
	addr := ap.Addr().Unmap() // ::ffff:10.0.0.1 is 10.0.0.1
	refuse := func(why string) error { return &RefusedError{ap.String(), why} }
	if addr.Zone() != "" {
		return refuse("it has a zone")
	}
	allow, deny := narrowest(g.cfg.Allow, addr), narrowest(g.cfg.Deny, addr)
	switch {
	case allow >= 0 && allow >= deny:
		return nil
	case deny >= 0:
		return refuse("its network is denied by configuration")
	}
	if why := notPublic(addr); why != "" {
		return refuse("the address is not public: " + why)
	}
	if othersPort(ap.Port()) {
		return refuse("the " + whyPort)
	}
	return nil
}

const whyPort = "port belongs to another service than HTTP; use 443, 80 or one above 1023"

// othersPort tells whether a port is of another service than HTTP: whoever may
// have it called could speak to mail servers and the like.
func othersPort(p uint16) bool { return p != 80 && p != 443 && p < 1024 }

// notPublic says what an address is that is not public.
func notPublic(addr netip.Addr) string {
	if !addr.IsValid() || addr.IsUnspecified() {
		return "none at all"
	}
	if addr.Is6() && !global.Contains(addr) {
		return "local, multicast, or an IPv4 address in disguise"
	}
	for _, n := range reserved {
		if n.Contains(addr) {
			return n.what
		}
	}
	return ""
}

// plain is a network of IPv4 as such, however it is written.
func plain(p netip.Prefix) netip.Prefix {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p
}

// narrowest is the length of the longest prefix that addr is in, -1 if it is in
// none: who lets a network through may deny a part of it, and the other way round.
func narrowest(networks []netip.Prefix, addr netip.Addr) int {
	bits := -1
	for _, p := range networks {
		if p = plain(p); p.Contains(addr) {
			bits = max(bits, p.Bits())
		}
	}
	return bits
}

// allowed tells whether an address is let through by Config.Allow.
func (g *Guard) allowed(addr netip.Addr) bool {
	return narrowest(g.cfg.Allow, addr.Unmap()) >= 0
}
