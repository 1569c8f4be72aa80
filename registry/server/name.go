package server

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSubject bounds the bytes of a subject's name: a topic's name and a
// record's with its namespace fit.
const maxSubject = 1024

// Confluent writes a subject of a context as :.context:subject. There is one
// context here, the default one, whose name is a dot.
const (
	contextMark    = ":."
	defaultContext = ":.:"
	globalContext  = ":.__GLOBAL:"
)

// subjectOf reads the subject of a path, which must have a name.
func subjectOf(r *http.Request) (string, error) {
	name, err := scopeOf(r)
	if err == nil && name == "" {
		return "", refuse(codeInvalidSubject, "The subject has no name; in a config or a mode '%.64s' stands for all of them", r.PathValue("s"))
	}
	return name, err
}

// scopeOf reads for which subject a config or a mode is; "" stands for all.
//
// It refuses a name that JSON, the topic's form, could not give back as it
// was, or that is no text, or whose context this registry does not keep: its
// ids would be mixed with those of the others.
func scopeOf(r *http.Request) (string, error) {
	name := r.PathValue("s")
	if name == globalContext {
		return "", nil
	}
	name = strings.TrimPrefix(name, defaultContext)
	if strings.HasPrefix(name, contextMark) {
		return "", refuse(codeInvalidSubject, "The specified subject '%.64s' is in a context; this registry keeps the default one only, leave :.context: out", name)
	}
	if len(name) > maxSubject || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", refuse(codeInvalidSubject, "The subject's name is not valid: want UTF-8 without control characters, at most %d bytes", maxSubject)
	}
	return name, nil
}

// listContexts are the names of the contexts there are.
func (s *Server) listContexts(r *http.Request) (any, error) {
	all := []string{"."}
	if !strings.HasPrefix(".", r.URL.Query().Get("contextPrefix")) {
		all = nil
	}
	return page(r, all)
}

func (s *Server) deleteContext(r *http.Request) (any, error) {
	return nil, refuse(codeNotPermitted, "Context %.64s cannot be deleted; there is only the default context, which stays", r.PathValue("c"))
}
