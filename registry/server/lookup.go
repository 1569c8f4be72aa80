package server

import (
	"encoding/json"
	"net/http"
)

type versionAnswer struct {
	Subject    string          `json:"subject"`
	Version    int             `json:"version"`
	ID         int             `json:"id"`
	GUID       string          `json:"guid"`
	Type       string          `json:"schemaType,omitempty"`
	References []reference     `json:"references,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Rules      json.RawMessage `json:"ruleSet,omitempty"`
	Schema     string          `json:"schema"`
}

func (v *version) answer() versionAnswer {
	return versionAnswer{v.subject, v.number, v.id, v.guid().String(), v.kind, v.refs, v.metadata, v.rules, v.text}
}

// lookup says under which version of a subject a schema is registered.
func (s *Server) lookup(r *http.Request) (any, error) {
	name, err := subjectOf(r)
	if err != nil {
		return nil, err
	}
	in, err := s.readSchema(r)
	if err != nil {
		return nil, err
	}
	deleted := flag(r, "deleted")
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if len(s.state.subjects[name].live(deleted)) == 0 {
		return nil, noSubject(name)
	}
	v := s.state.lookup(name, in.content, deleted, anyVersion)
	if v == nil {
		return nil, refuse(codeSchemaNotFound, "Schema not found")
	}
	out := v.answer()
	out.Schema, err = s.state.formatted(r, v.content)
	return out, err
}
