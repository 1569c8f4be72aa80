package api

import (
	"net"
	"net/http"
	"strings"
)

// onlyHere answers on a loopback address only to who asks by that address or
// for localhost. What it guards asks for no key: a page of another site whose
// name was made to resolve to here would read it as its own, and so would
// everybody whom a proxy on this machine lets through.
func onlyHere(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if misnamed(r) {
			problem(http.StatusNotFound, "There is nothing at this address.").write(w, r)
			return
		}
		h.ServeHTTP(w, r)
	}
}

func misnamed(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if local == nil || !local.IP.IsLoopback() {
		return false
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return name != "" && name != "localhost" && !strings.HasSuffix(name, ".localhost") && net.ParseIP(name) == nil
}
