package server

import (
	"net/http"
)

type compatibleAnswer struct {
	Compatible bool     `json:"is_compatible"`
	Messages   []string `json:"messages,omitempty"`
}

// checkAll tries a schema as register would.
func (s *Server) checkAll(r *http.Request) (any, error) {
	c, err := s.readSchema(r)
	if err != nil {
		return nil, err
	}
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	return s.compatible(r, c, s.state.subjects[r.PathValue("s")].live(false)), nil
}

// checkOne tries a schema against one version.
func (s *Server) checkOne(r *http.Request) (any, error) {
	c, err := s.readSchema(r)
	if err != nil {
		return nil, err
	}
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	v, err := s.version(r)
	if err != nil {
		return nil, err
	}
	return s.compatible(r, c, []*version{v}), nil
}

func (s *Server) compatible(r *http.Request, c *content, earlier []*version) compatibleAnswer {
	reasons := s.state.check(s.state.levelOf(r.PathValue("s")), c, earlier)
	out := compatibleAnswer{Compatible: len(reasons) == 0}
	if flag(r, "verbose") {
		out.Messages = reasons
	}
	return out
}
