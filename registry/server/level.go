package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/waybillhq/waybill/registry/compat"
)

// Confluent names the level differently in what it takes and what it gives.
type levelRequest struct {
	Level string `json:"compatibility"`
}

type levelAnswer struct {
	Level compat.Level `json:"compatibilityLevel"`
}

func (s *Server) getGlobalLevel(*http.Request) (any, error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	return levelAnswer{s.state.level}, nil
}

func (s *Server) getLevel(r *http.Request) (any, error) {
	name := r.PathValue("s")
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if sub := s.state.subjects[name]; sub != nil && sub.level != "" {
		return levelAnswer{sub.level}, nil
	}
	if flag(r, "defaultToGlobal") {
		return levelAnswer{s.state.level}, nil
	}
	return nil, refuse(codeNoSubjectLevel, "Subject '%s' does not have subject-level compatibility configured", name)
}

func (s *Server) putLevel(r *http.Request) (any, error) {
	var in levelRequest
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	level, ok := compat.ParseLevel(in.Level)
	if !ok {
		return nil, refuse(codeInvalidLevel, "Invalid compatibility level %.32q. Valid values are %s",
			in.Level, strings.Trim(fmt.Sprint(compat.Levels()), "[]"))
	}
	if err := checkSubject(r.PathValue("s")); err != nil {
		return nil, err
	}
	err := s.write(r.Context(), func(*state) ([]draft, error) {
		return []draft{{configKey(r.PathValue("s")), encode(levelAnswer{level})}}, nil
	})
	return levelRequest{string(level)}, err
}

func (s *Server) deleteLevel(r *http.Request) (any, error) {
	name := r.PathValue("s")
	var old levelAnswer
	err := s.write(r.Context(), func(st *state) ([]draft, error) {
		old.Level = st.level
		if name != "" {
			sub := st.subjects[name]
			if sub == nil || sub.level == "" {
				return nil, noSubject(name)
			}
			old.Level = sub.level
		}
		return []draft{{configKey(name), nil}}, nil
	})
	return old, err
}

type modeBody struct {
	Mode string `json:"mode"`
}

const modeReadWrite = "READWRITE"

func (s *Server) getMode(r *http.Request) (any, error) {
	if name := r.PathValue("s"); name != "" && !flag(r, "defaultToGlobal") {
		return nil, refuse(codeNoSubjectMode, "Subject '%s' does not have subject-level mode configured", name)
	}
	return modeBody{modeReadWrite}, nil
}

// putMode lets a tool have the one mode there is.
func (s *Server) putMode(r *http.Request) (any, error) {
	var in modeBody
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	if in.Mode != modeReadWrite {
		return nil, refuse(codeInvalidMode, "Invalid mode %.32q. The only one of this registry is %s", in.Mode, modeReadWrite)
	}
	return in, nil
}
