package server

import (
	"io"
	"net/http"
	"path"
	"strings"
)

// text is an answer that is sent as it is.
type text string

type endpoint func(*http.Request) (any, error)

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, e := range map[string]endpoint{
		"GET /{$}": func(*http.Request) (any, error) { return struct{}{}, nil },

		"GET /subjects":                               s.listSubjects,
		"POST /subjects/{s}":                          s.lookup,
		"DELETE /subjects/{s}":                        s.deleteSubject,
		"GET /subjects/{s}/versions":                  s.listVersions,
		"POST /subjects/{s}/versions":                 s.register,
		"GET /subjects/{s}/versions/{v}":              s.getVersion,
		"DELETE /subjects/{s}/versions/{v}":           s.deleteVersion,
		"GET /subjects/{s}/versions/{v}/schema":       s.getVersionText,
		"GET /subjects/{s}/versions/{v}/referencedby": s.getReferrers,

		"GET /schemas":                   s.listSchemas,
		"GET /schemas/types":             s.getTypes,
		"GET /schemas/ids/{id}":          s.getSchema,
		"GET /schemas/ids/{id}/schema":   s.getSchemaText,
		"GET /schemas/ids/{id}/subjects": s.getSchemaSubjects,
		"GET /schemas/ids/{id}/versions": s.getSchemaVersions,

		"GET /schemas/guids/{guid}":     s.getByGUID,
		"GET /schemas/guids/{guid}/ids": s.getIDsByGUID,

		"GET /config":        s.getConfig,
		"PUT /config":        s.putConfig,
		"DELETE /config":     s.deleteConfig,
		"GET /config/{s}":    s.getConfig,
		"PUT /config/{s}":    s.putConfig,
		"DELETE /config/{s}": s.deleteConfig,

		"GET /mode":        s.getMode,
		"PUT /mode":        s.putMode,
		"DELETE /mode":     s.deleteMode,
		"GET /mode/{s}":    s.getMode,
		"PUT /mode/{s}":    s.putMode,
		"DELETE /mode/{s}": s.deleteMode,

		"GET /contexts":        s.listContexts,
		"DELETE /contexts/{c}": s.deleteContext,

		"POST /compatibility/subjects/{s}/versions":     s.checkAll,
		"POST /compatibility/subjects/{s}/versions/{v}": s.checkOne,
	} {
		mux.Handle(pattern, s.answer(e))
	}
	return mux
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A page in a browser must not write to a registry on the same machine.
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		s.fail(w, r, refuse(http.StatusForbidden, "%s", err))
		return
	}
	if misnamed(r, s.cfg.Hosts) {
		s.fail(w, r, refuse(http.StatusMisdirectedRequest, "On this machine the registry is asked as localhost or by address, not as '%.64s'", r.Host))
		return
	}
	if err := s.cfg.Auth.check(r); err != nil {
		w.Header().Set("WWW-Authenticate", s.cfg.Auth.challenge())
		s.fail(w, r, err)
		return
	}
	select {
	case <-s.ready:
	default:
		w.Header().Set("Retry-After", "1")
		s.fail(w, r, refuse(http.StatusServiceUnavailable, "The registry is still reading its topic"))
		return
	}
	s.route(w, withoutSlash(r))
}

// withoutSlash takes a path with a slash at its end for the one without. A name
// may end with one too, which is then escaped and stays.
func withoutSlash(r *http.Request) *http.Request {
	if p := r.URL.EscapedPath(); len(p) < 2 || !strings.HasSuffix(p, "/") {
		return r
	}
	r2 := r.Clone(r.Context())
	r2.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
	r2.URL.RawPath = strings.TrimSuffix(r.URL.RawPath, "/")
	return r2
}

// route answers a path or a method that is not there as JSON, which the mux
// would not. A path that is not clean is not there: the mux would send the
// client to another, so that a subject without a name made of
// /subjects//versions a subject called versions.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if p := r.URL.EscapedPath(); p != path.Clean(p) {
		s.fail(w, r, refuse(http.StatusNotFound, "HTTP 404 Not Found"))
		return
	}
	h, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	var seen statusOnly
	h.ServeHTTP(&seen, r)
	if allow := seen.Header().Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		s.fail(w, r, refuse(http.StatusMethodNotAllowed, "HTTP 405 Method Not Allowed, allowed here: %s", allow))
		return
	}
	s.fail(w, r, refuse(http.StatusNotFound, "HTTP 404 Not Found"))
}

type statusOnly struct{ header http.Header }

func (o *statusOnly) Header() http.Header {
	if o.header == nil {
		o.header = http.Header{}
	}
	return o.header
}
func (o *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (o *statusOnly) WriteHeader(int)             {}

func (s *Server) answer(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := e(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", contentType(r))
		if raw, ok := out.(text); ok {
			_, _ = io.WriteString(w, string(raw)) // the client is gone, or it is told
			return
		}
		_, _ = w.Write(encode(out))
	})
}

// contentType is the registry's own unless plain JSON is asked for.
func contentType(r *http.Request) string {
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, "application/json") && !strings.Contains(accept, "schemaregistry") {
		return "application/json"
	}
	return mediaType
}
