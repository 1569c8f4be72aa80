package guard

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestOnlyPublicAddressesAreLetThrough(t *testing.T) {
	g := New(Config{})
	for _, a := range []string{
		// IPv4
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "100.100.100.200",
		"127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		// IPv6
		"::", "::1", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "ff05::2",
		"2001::1", "2001:0:53aa:64c:0:1:1:1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
		"3fff::1", "100::1", "5f00::1", "4000::1",
		// IPv4 in disguise
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:a00:1", "::127.0.0.1", "::ffff:0:127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "64:ff9b::8.8.8.8",
		// with a zone
		"fe80::1%eth0", "2606:4700::1111%eth0",
	} {
		if err := g.CheckAddr(netip.AddrPortFrom(netip.MustParseAddr(a), 443)); !Refused(err) {
			t.Errorf("%s is let through", a)
		}
	}
	for _, a := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
		"198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450:4001::200e", "2001:200::1", "2003::1",
	} {
		if err := g.CheckAddr(netip.AddrPortFrom(netip.MustParseAddr(a), 443)); err != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestPortsOfOtherServicesAreRefused(t *testing.T) {
	g := New(Config{})
	for port, want := range map[uint16]bool{443: true, 80: true, 8443: true, 1024: true, 65535: true, 25: false, 22: false, 0: false, 1023: false} {
		if err := g.CheckAddr(netip.AddrPortFrom(netip.MustParseAddr("8.8.8.8"), port)); (err == nil) != want {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

func TestConfigurationOpensAndClosesNetworks(t *testing.T) {
	g := New(Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::ffff:10.1.0.0/112"), netip.MustParsePrefix("fd00::/8")},
		Deny:  []netip.Prefix{netip.MustParsePrefix("8.8.8.0/24"), netip.MustParsePrefix("127.0.0.0/8")},
	})
	for a, want := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "127.0.0.2": false, "10.1.2.3": true, "10.2.0.1": false,
		"fd00::1": true, "fc00::1": false, "8.8.8.8": false, "::ffff:8.8.8.8": false, "8.8.4.4": true,
	} {
		if err := g.CheckAddr(netip.AddrPortFrom(netip.MustParseAddr(a), 443)); (err == nil) != want {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func TestURLsThatCannotBeCalledAreRefusedWithoutBeingQuoted(t *testing.T) {
	strict, dev := New(Config{}), New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for raw, want := range map[string]struct{ strict, dev bool }{
		"https://example.com/hook":                           {true, true},
		"https://example.com:8443/h?a=b":                     {true, true},
		"https://1.1.1.1/":                                   {true, true},
		"https://[2606:4700::1111]/":                         {true, true},
		"http://example.com/hook":                            {false, true}, // the name may be of the allowed network
		"http://1.1.1.1/":                                    {false, false},
		"http://127.0.0.1:9000/x":                            {false, true},
		"https://localhost/":                                 {false, true},
		"https://LOCALHOST./":                                {false, true},
		"https://a.localhost/":                               {false, true},
		"https://127.0.0.1/":                                 {false, true},
		"https://[::1]/":                                     {false, false},
		"https://[::ffff:169.254.169.254]/latest/meta-data":  {false, false},
		"https://169.254.169.254/":                           {false, false},
		"https://2130706433/":                                {false, false},
		"https://0x7f.0.0.1/":                                {false, false},
		"https://0x7f000001/":                                {false, false},
		"https://127.1/":                                     {false, false},
		"https://0177.0.0.01/":                               {false, false},
		"https://[fe80::1%25eth0]/":                          {false, false},
		"https://user:secretpass@example.com/":               {false, false},
		"https://example.com/#secretpart":                    {false, false},
		"https://example.com:0/":                             {false, false},
		"https://example.com:/":                              {false, false},
		"https://example.com:99999/":                         {false, false},
		"https://1.1.1.1:25/":                                {false, false},
		"ftp://example.com/":                                 {false, false},
		"file:///etc/passwd":                                 {false, false},
		"gopher://127.0.0.1:6379/_":                          {false, false},
		"//example.com/":                                     {false, false},
		"example.com/hook":                                   {false, false},
		"https:example.com":                                  {false, false},
		"https://":                                           {false, false},
		"https://exa mple.com/":                              {false, false},
		"https://example.com/\x7f":                           {false, false},
		"":                                                   {false, false},
		"https://example.com/" + strings.Repeat("a", maxURL): {false, false},
	} {
		for g, want := range map[*Guard]bool{strict: want.strict, dev: want.dev} {
			_, err := g.CheckURL(raw)
			if (err == nil) != want || err != nil && !Refused(err) {
				t.Errorf("%.80q (dev %v): %v", raw, g == dev, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("quoted: %v", err)
			}
		}
	}
}

// What a name resolves to is not known when its URL is given; its port is.
func TestPortsOfOtherServicesAreRefusedByNameToo(t *testing.T) {
	allow := func(networks ...string) *Guard {
		var c Config
		for _, n := range networks {
			c.Allow = append(c.Allow, netip.MustParsePrefix(n))
		}
		return New(c)
	}
	strict, dev := allow(), allow("127.0.0.0/8", "::1/128", "::ffff:127.0.0.0/104")
	inner, all := allow("127.0.0.0/8", "10.0.0.0/8"), allow("0.0.0.0/0")
	for _, c := range []struct {
		url   string
		taken []*Guard
	}{
		{"https://example.com:22/", []*Guard{inner, all}}, // the name may be of the allowed network
		{"https://example.com:1023/", []*Guard{inner, all}},
		{"https://localhost:81/", []*Guard{dev, inner, all}},
		{"https://1.1.1.1:22/", []*Guard{all}},
		{"https://10.0.0.1:22/", []*Guard{inner, all}},
		{"https://example.com:443/", []*Guard{strict, dev, inner, all}},
		{"https://example.com:80/", []*Guard{strict, dev, inner, all}},
		{"https://example.com:1024/", []*Guard{strict, dev, inner, all}},
	} {
		for _, g := range []*Guard{strict, dev, inner, all} {
			_, err := g.CheckURL(c.url)
			if want := slices.Contains(c.taken, g); (err == nil) != want || err != nil && !Refused(err) {
				t.Errorf("%s, allowed %v: %v", c.url, g.cfg.Allow, err)
			}
		}
	}
}

// What is denied is so within what is allowed, too.
func TestAPartOfAnAllowedNetworkMayBeDenied(t *testing.T) {
	g := New(Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Deny: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
	if err := g.CheckAddr(netip.MustParseAddrPort("10.2.0.1:443")); err != nil {
		t.Error(err)
	}
	if err := g.CheckAddr(netip.MustParseAddrPort("10.1.0.1:443")); err == nil {
		t.Error("it is let through")
	}
}
