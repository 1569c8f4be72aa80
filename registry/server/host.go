package server

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// misnamed tells whether a request reached a loopback address under a name that
// does not stand for this machine. The registry asks nobody who they are, so it
// must not answer a page of another site whose name was made to resolve to
// here: the browser takes such a registry for the page's own origin, and sends
// nothing that would tell.
func misnamed(r *http.Request, hosts []string) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if local == nil || !local.IP.IsLoopback() {
		return false
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return name != "" && name != "localhost" && !strings.HasSuffix(name, ".localhost") &&
		net.ParseIP(name) == nil && !slices.Contains(hosts, name)
}
