package web

import (
	"net/http"
	"strconv"
	"strings"
)

// pagePolicy allows what these pages do and nothing else: own modules, own
// styles, own API, and the map's worker, which is a file of its own because a
// blob: would be code from anywhere. trusted-types refuses strings where markup
// would run; its one policy, made by js/map-gl.js, lets that worker's address
// through and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"worker-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types default"

func (f file) serve(w http.ResponseWriter, r *http.Request, cache string) {
	h := w.Header()
	h.Set("Cache-Control", cache)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	if f.policy {
		setPageHeaders(h, f.place)
	}
	body, etag := f.plain, `"`+f.etag+`"`
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		if packed := f.gzip(); packed != nil {
			body, etag = packed, `"`+f.etag+`-gz"`
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.mime)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the visitor left: nothing to do about it
	}
}

// setPageHeaders also keeps a tracking link from leaking: its path is the
// customer's secret, so it is neither sent as referrer nor indexed.
func setPageHeaders(h http.Header, place bool) {
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	where := "()"
	if place {
		where = "(self)"
	}
	h.Set("Permissions-Policy", "camera=(), geolocation="+where+", microphone=()")
	h.Set("X-Robots-Tag", "noindex")
}

func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			return !refused(weight)
		}
	}
	return false
}

// refused reports whether a weight such as q=0 or q=0.000 says "never this".
func refused(weight string) bool {
	value, found := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
	if !found {
		return false
	}
	q, err := strconv.ParseFloat(value, 64)
	return err == nil && q <= 0
}

func matches(header, etag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		tag := strings.TrimPrefix(strings.TrimSpace(part), "W/")
		if tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
