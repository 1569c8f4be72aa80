package deadhttp

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"strings"
)

// mayAsk is nil for who bears the key; without a key, for this machine alone.
// What changes something has to be sent as JSON: a page of another site can make
// a browser send anything else.
func (s *service) mayAsk(r *http.Request) *problem {
	switch {
	case s.cfg.Key == "" && !fromHere(r):
		return &problem{http.StatusForbidden, "Without an operator's key this answers on the machine itself alone: set WAYBILL_OPERATOR_KEY and send it as a bearer token."}
	case s.cfg.Key != "" && !s.bears(r):
		return &problem{http.StatusUnauthorized, "Send the operator's key as a bearer token."}
	}
	if r.Method != http.MethodPost {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &problem{http.StatusUnsupportedMediaType, "Send JSON, as application/json."}
	}
	return nil
}

func (s *service) bears(r *http.Request) bool {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// Of one length whatever was sent: the time it takes tells nothing.
	got, want := sha256.Sum256([]byte(strings.TrimSpace(key))), sha256.Sum256([]byte(s.cfg.Key))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// fromHere tells a request of this machine: from a loopback address to one, by
// a name that is its own (another's may be made to resolve to here), and not
// handed on by a proxy.
func fromHere(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if local == nil || !local.IP.IsLoopback() || err != nil || !net.ParseIP(remote).IsLoopback() {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return ownName(r.Host)
}

func ownName(name string) bool {
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	ip := net.ParseIP(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || (ip != nil && ip.IsLoopback())
}
