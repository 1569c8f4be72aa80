package server

import (
	"net/http"
	"strings"
)

func (s *Server) listSubjects(r *http.Request) (any, error) {
	prefix := prefixOf(r)
	deleted, only := flag(r, "deleted"), flag(r, "deletedOnly")
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	return page(r, s.state.names(func(sub *subject) bool {
		if !strings.HasPrefix(sub.name, prefix) {
			return false
		}
		live := len(sub.live(false)) > 0
		if only {
			return !live && len(sub.versions) > 0
		}
		return live || deleted && len(sub.versions) > 0
	}))
}

// prefixOf is the prefix asked for. Confluent's ":*:" means every context, of
// which there is one.
func prefixOf(r *http.Request) string {
	return strings.TrimPrefix(r.URL.Query().Get("subjectPrefix"), ":*:")
}

func (s *Server) listVersions(r *http.Request) (any, error) {
	name := r.PathValue("s")
	deleted, only := flag(r, "deleted"), flag(r, "deletedOnly")
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	var numbers []int
	for _, v := range s.state.subjects[name].live(deleted || only) {
		if !only || v.deleted {
			numbers = append(numbers, v.number)
		}
	}
	if len(numbers) == 0 {
		return nil, noSubject(name)
	}
	return page(r, numbers)
}

func (s *Server) version(r *http.Request) (*version, error) {
	number, err := versionOf(r)
	if err != nil {
		return nil, err
	}
	return s.state.pick(r.PathValue("s"), number, flag(r, "deleted"))
}

func (s *Server) getVersion(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	v, err := s.version(r)
	if err != nil {
		return nil, err
	}
	return v.answer(), nil
}

func (s *Server) getVersionText(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	v, err := s.version(r)
	if err != nil {
		return nil, err
	}
	return text(v.text), nil
}

// getReferrers are the ids of the schemas that refer to a version.
func (s *Server) getReferrers(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	v, err := s.version(r)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, u := range s.state.referrers(v) {
		ids = append(ids, u.id)
	}
	return page(r, ids)
}
