package guard

import (
	"net/netip"
	"strings"
	"testing"
)

// Whatever a tenant gives for a URL: what is taken is https to a name or a public
// address, and what is refused is not quoted.
func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"https://example.com/hook", "https://[::ffff:169.254.169.254]/", "https://0x7f.1/", "http://127.0.0.1/", "https://u:p@h/",
		"https://example.com:443#x", "https://[fe80::1%25eth0]:8443/", "HTTPS://EXAMPLE.com.", "https://2130706433/", "https:///x", "\x00",
	} {
		f.Add(s)
	}
	g := New(Config{})
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := g.CheckURL(raw)
		if err != nil {
			if !Refused(err) || len(raw) > 20 && strings.Contains(err.Error(), raw) {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" {
			t.Fatalf("%q is taken as %s", raw, u)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && (!a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback()) {
			t.Fatalf("%q is taken, at %s", raw, a)
		}
	})
}
