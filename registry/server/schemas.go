package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

type schemaAnswer struct {
	GUID       string          `json:"guid"`
	Type       string          `json:"schemaType,omitempty"`
	Schema     string          `json:"schema"`
	References []reference     `json:"references,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Rules      json.RawMessage `json:"ruleSet,omitempty"`
	MaxID      int             `json:"maxId,omitempty"`
}

func (c *content) answer() schemaAnswer {
	return schemaAnswer{GUID: c.guid().String(), Type: c.kind, Schema: c.text, References: c.refs, Metadata: c.metadata, Rules: c.rules}
}

// content finds the schema with the id of a path, deleted softly or not: a
// record with that id may turn up at any time.
func (s *Server) content(r *http.Request) (*content, error) {
	raw := r.PathValue("id")
	id, err := strconv.Atoi(raw)
	c := s.state.byID[id]
	if err != nil || c == nil {
		return nil, refuse(codeSchemaNotFound, "Schema %.32s not found", raw)
	}
	return c, nil
}

func (s *Server) getSchema(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	c, err := s.content(r)
	if err != nil {
		return nil, err
	}
	out := c.answer()
	if out.Schema, err = s.state.formatted(r, c); err != nil {
		return nil, err
	}
	if flag(r, "fetchMaxId") {
		out.MaxID = s.state.highest
	}
	return out, nil
}

func (s *Server) getSchemaText(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	c, err := s.content(r)
	if err != nil {
		return nil, err
	}
	out, err := s.state.formatted(r, c)
	return text(out), err
}

// usersOf are the versions with the id of a path.
func (s *Server) usersOf(r *http.Request) ([]*version, error) {
	c, err := s.content(r)
	if err != nil {
		return nil, err
	}
	users := s.state.users(c.id, flag(r, "deleted"))
	if only := r.URL.Query().Get("subject"); only != "" {
		users = slices.DeleteFunc(users, func(v *version) bool { return v.subject != only })
	}
	return users, nil
}

func (s *Server) getSchemaSubjects(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	users, err := s.usersOf(r)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range users {
		names = append(names, v.subject)
	}
	return page(r, slices.Compact(names))
}

type usageAnswer struct {
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

func (s *Server) getSchemaVersions(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	users, err := s.usersOf(r)
	if err != nil {
		return nil, err
	}
	var out []usageAnswer
	for _, v := range users {
		out = append(out, usageAnswer{v.subject, v.number})
	}
	return page(r, out)
}

func (s *Server) listSchemas(r *http.Request) (any, error) {
	deleted, latest := flag(r, "deleted"), flag(r, "latestOnly")
	offset, limit, err := window(r)
	if err != nil {
		return nil, err
	}
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	out := []versionAnswer{}
	for sub := range s.state.each(prefixOf(r)) {
		versions := sub.live(deleted)
		if latest && len(versions) > 0 {
			versions = versions[len(versions)-1:]
		}
		skipped := min(offset, len(versions))
		offset -= skipped
		for _, v := range versions[skipped:] {
			if len(out) == limit {
				return out, nil
			}
			out = append(out, v.answer())
		}
	}
	return out, nil
}

// getTypes are the languages there are.
func (s *Server) getTypes(*http.Request) (any, error) { return kinds(), nil }
