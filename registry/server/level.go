package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/waybillhq/waybill/registry/compat"
)

// Confluent names the level differently in what it takes and what it gives.
type configRequest struct {
	Level     string `json:"compatibility,omitempty"`
	Normalize *bool  `json:"normalize,omitempty"`
}

type configAnswer struct {
	Level     compat.Level `json:"compatibilityLevel,omitempty"`
	Normalize *bool        `json:"normalize,omitempty"`
}

func (r rules) answer() configAnswer {
	out := configAnswer{Level: r.level()}
	if r.config != nil {
		out.Normalize = r.config.Normalize
	}
	return out
}

// global is the config for all, where the level is never missing.
func (st *state) global() configAnswer {
	out := st.rules.answer()
	out.Level = st.levelOf("")
	return out
}

func (s *Server) getConfig(r *http.Request) (any, error) {
	name, err := scopeOf(r)
	if err != nil {
		return nil, err
	}
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	own := s.state.subjects[name].own()
	switch {
	case name == "":
		return s.state.global(), nil
	case own.config != nil:
		out := own.answer()
		if flag(r, "defaultToGlobal") {
			out.Level = s.state.levelOf(name)
		}
		return out, nil
	case flag(r, "defaultToGlobal"):
		return s.state.global(), nil
	}
	return nil, refuse(codeNoSubjectLevel, "Subject '%s' does not have subject-level compatibility configured", name)
}

func (s *Server) putConfig(r *http.Request) (any, error) {
	name, err := scopeOf(r)
	if err != nil {
		return nil, err
	}
	var in configRequest
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	level, ok := compat.ParseLevel(in.Level)
	if !ok && (in.Level != "" || in.Normalize == nil) {
		return nil, refuse(codeInvalidLevel, "Invalid compatibility level %.32q. Valid values of \"compatibility\" are %s",
			in.Level, strings.Trim(fmt.Sprint(compat.Levels()), "[]"))
	}
	var out configRequest
	err = s.write(r.Context(), func(st *state) ([]draft, error) {
		if err := st.writable(name); err != nil {
			return nil, err
		}
		own := st.rules
		if name != "" {
			own = st.subjects[name].own()
		}
		next := configValue{}
		if own.config != nil {
			next = *own.config // what is not named stays
		}
		if ok {
			next.Level = string(level)
		}
		if in.Normalize != nil {
			next.Normalize = in.Normalize
		}
		out = configRequest{next.Level, next.Normalize}
		return []draft{{ruleKey(keyConfig, name), rules{config: &next}.value(keyConfig, name)}}, nil
	})
	return out, err
}

func (s *Server) deleteConfig(r *http.Request) (any, error) {
	name, err := scopeOf(r)
	if err != nil {
		return nil, err
	}
	var old configAnswer
	err = s.write(r.Context(), func(st *state) ([]draft, error) {
		if old = st.global(); name != "" {
			own := st.subjects[name].own()
			if own.config == nil {
				return nil, noSubject(name)
			}
			old = own.answer()
		}
		if err := st.writable(name); err != nil {
			return nil, err
		}
		return st.unset(keyConfig, name), nil
	})
	return old, err
}
