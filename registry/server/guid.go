package server

import (
	"net/http"

	"github.com/google/uuid"
)

type contextID struct {
	Context string `json:"context"`
	ID      int    `json:"id"`
}

type guidAnswer struct {
	ID int `json:"id"`
	schemaAnswer
}

// byGUID finds a schema by its GUID, which is the same in every registry.
func (s *Server) byGUID(r *http.Request) (*content, error) {
	raw := r.PathValue("guid")
	guid, err := uuid.Parse(raw)
	id, there := s.state.guids[guid]
	if err != nil || !there {
		return nil, refuse(codeSchemaNotFound, "Schema %.64s not found", raw)
	}
	return s.state.byID[id], nil
}

func (s *Server) getByGUID(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	c, err := s.byGUID(r)
	if err != nil {
		return nil, err
	}
	out := guidAnswer{c.id, c.answer()}
	out.Schema, err = s.state.formatted(r, c)
	return out, err
}

func (s *Server) getIDsByGUID(r *http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	c, err := s.byGUID(r)
	if err != nil {
		return nil, err
	}
	return []contextID{{".", c.id}}, nil
}
