package server

import (
	"net/http"
	"strings"
)

func (s *Server) listSubjects(r *http.Request) (any, error) {
	deleted, only := flag(r, "deleted"), flag(r, "deletedOnly")
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	return page(r, s.state.list(prefixOf(r), func(sub *subject) bool {
		if only {
			return len(sub.versions) > 0 && !sub.alive()
		}
		return sub.alive() || deleted && len(sub.versions) > 0
	}))
}

// prefixOf is the prefix asked for. Confluent's ":*:" means every context, of
// which there is one.
func prefixOf(r *http.Request) string {
	prefix := strings.TrimPrefix(r.URL.Query().Get("subjectPrefix"), ":*:")
	return strings.TrimPrefix(prefix, defaultContext)
}

func (s *Server) listVersions(r *http.Request) (any, error) {
	name, err := subjectOf(r)
	if err != nil {
		return nil, err
	}
	deleted, only, negative := flag(r, "deleted"), flag(r, "deletedOnly"), flag(r, "deletedAsNegative")
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	all := s.state.subjects[name].live(deleted || only || negative)
	if len(all) == 0 {
		return nil, noSubject(name)
	}
	var numbers []int
	for _, v := range all {
		switch {
		case negative && v.deleted:
			numbers = append(numbers, -v.number)
		case negative || !only || v.deleted:
			numbers = append(numbers, v.number)
		}
	}
	return page(r, numbers)
}

func (s *Server) version(r *http.Request, deleted bool) (*version, error) {
	number, err := versionOf(r)
	if err != nil {
		return nil, err
	}
	name, err := subjectOf(r)
	if err != nil {
		return nil, err
	}
	return s.state.pick(name, number, deleted)
}

func (s *Server) getVersion(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	v, err := s.version(r, flag(r, "deleted"))
	if err != nil {
		return nil, err
	}
	out := v.answer()
	out.Schema, err = s.state.formatted(r, v.content)
	return out, err
}

func (s *Server) getVersionText(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	v, err := s.version(r, flag(r, "deleted"))
	if err != nil {
		return nil, err
	}
	out, err := s.state.formatted(r, v.content)
	return text(out), err
}

// getReferrers are the ids of the schemas that refer to a version.
func (s *Server) getReferrers(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	v, err := s.version(r, true)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, u := range s.state.referrers(v, flag(r, "deleted")) {
		ids = append(ids, u.id)
	}
	return page(r, ids)
}
