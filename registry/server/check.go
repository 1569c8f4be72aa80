package server

import (
	"errors"
	"net/http"
	"strconv"
)

type compatibleAnswer struct {
	Compatible bool     `json:"is_compatible"`
	Messages   []string `json:"messages,omitempty"`
}

// checkAll tries a schema as register would.
func (s *Server) checkAll(r *http.Request) (any, error) {
	return s.compatible(r, func(name string) ([]*version, error) {
		return s.state.subjects[name].live(false), nil
	})
}

// checkOne tries a schema against one version; the latest one may be missing,
// for then there is nothing that the schema could not follow.
func (s *Server) checkOne(r *http.Request) (any, error) {
	number, err := versionOf(r)
	if err != nil {
		return nil, err
	}
	return s.compatible(r, func(name string) ([]*version, error) {
		v, err := s.state.pick(name, number, false)
		switch {
		case err == nil:
			return []*version{v}, nil
		case number == latestVersion:
			return nil, nil
		}
		return nil, noVersion(strconv.Itoa(number))
	})
}

func (s *Server) compatible(r *http.Request, with func(name string) ([]*version, error)) (any, error) {
	name, err := subjectOf(r)
	if err != nil {
		return nil, err
	}
	verbose := flag(r, "verbose")
	in, err := s.readSchema(r)
	if f := (*failure)(nil); verbose && errors.As(err, &f) && f.Code == codeInvalidSchema {
		return compatibleAnswer{Messages: []string{f.Message}}, nil
	}
	if err != nil {
		return nil, err
	}
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	earlier, err := with(name)
	if err != nil {
		return nil, err
	}
	reasons := s.state.check(s.state.levelOf(name), in.content, earlier)
	out := compatibleAnswer{Compatible: len(reasons) == 0}
	if verbose {
		out.Messages = reasons
	}
	return out, nil
}
