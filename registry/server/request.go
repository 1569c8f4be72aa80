package server

import (
	"math"
	"net/http"
	"strconv"
	"strings"
)

// schemaRequest is a schema as a client sends it.
type schemaRequest struct {
	Schema     string      `json:"schema"`
	Type       string      `json:"schemaType"`
	References []reference `json:"references"`
	ID         int         `json:"id"`
}

// readSchema reads the schema of a request.
func (s *Server) readSchema(r *http.Request) (*content, error) {
	var in schemaRequest
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	if err := checkKind(in.Type); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Schema) == "" {
		return nil, refuse(codeInvalidSchema, "Empty schema")
	}
	if in.ID > 0 {
		return nil, refuse(codeNotPermitted, "Ids are given by the registry; a chosen id needs mode IMPORT, which it does not have")
	}
	c := newContent(in.Schema, in.References)
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	for _, ref := range c.refs {
		if v := s.state.find(ref.Subject, ref.Version); v == nil || v.deleted {
			return nil, refuse(codeInvalidSchema,
				"No schema reference found for subject \"%s\" and version %d; register it first", ref.Subject, ref.Version)
		}
	}
	if _, err := s.state.compile(c); err != nil {
		return nil, refuse(codeInvalidSchema, "Invalid schema: %s", err)
	}
	if flag(r, "normalize") && len(c.refs) == 0 {
		normal := newContent(c.canon(), nil)
		_, err := s.state.compile(normal)
		return normal, err
	}
	return c, nil
}

// latestVersion stands for the highest version not deleted.
const latestVersion = -1

// versionOf reads the version of a path.
func versionOf(r *http.Request) (int, error) {
	v := r.PathValue("v")
	if v == "latest" || v == "-1" {
		return latestVersion, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, refuse(codeInvalidVersion, "The specified version '%.64s' is not a valid version id. "+
			"Allowed values are between [1, 2^31-1] and the string \"latest\"", v)
	}
	return n, nil
}

// pick finds the version that a request names.
func (st *state) pick(name string, number int, deleted bool) (*version, error) {
	all := st.subjects[name].live(deleted)
	if len(all) == 0 {
		return nil, noSubject(name)
	}
	if number == latestVersion {
		return all[len(all)-1], nil
	}
	v := st.find(name, number)
	if v == nil || v.deleted && !deleted {
		return nil, noVersion(strconv.Itoa(number))
	}
	return v, nil
}
