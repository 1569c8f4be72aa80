package server

import "net/http"

type modeBody struct {
	Mode mode `json:"mode"`
}

func (s *Server) getMode(r *http.Request) (any, error) {
	name, err := scopeOf(r)
	if err != nil {
		return nil, err
	}
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if name != "" && s.state.subjects[name].own().mode == "" && !flag(r, "defaultToGlobal") {
		return nil, refuse(codeNoSubjectMode, "Subject '%s' does not have subject-level mode configured", name)
	}
	return modeBody{s.state.modeOf(name)}, nil
}

func (s *Server) putMode(r *http.Request) (any, error) {
	name, err := scopeOf(r)
	if err != nil {
		return nil, err
	}
	var in modeBody
	if err := readBody(r, &in); err != nil {
		return nil, err
	}
	next, ok := parseMode(string(in.Mode))
	if !ok || next == forwarding {
		return nil, refuse(codeInvalidMode, "Invalid mode %.32q. Valid values are %s, %s and %s", string(in.Mode), readWrite, readOnly, importing)
	}
	err = s.write(r.Context(), func(st *state) ([]draft, error) {
		var out []draft
		if next == importing && st.modeOf(name) != importing && !flag(r, "force") {
			if out, err = st.clear(name); err != nil {
				return nil, err
			}
		}
		return append(out, draft{ruleKey(keyMode, name), rules{mode: next}.value(keyMode, name)}), nil
	})
	return in, err
}

// clear makes room for schemas from elsewhere: none may be there, and those
// that were deleted softly are deleted for good, since their ids and versions
// may be other schemas' there.
func (st *state) clear(name string) ([]draft, error) {
	var gone []*version
	for _, s := range st.subjects {
		if name != "" && s.name != name {
			continue
		}
		if s.alive() {
			return nil, refuse(codeNotPermitted, "Cannot import since found existing subjects, such as %s; delete them, or set force=true to import beside them", s.name)
		}
		gone = append(gone, s.versions...)
	}
	if len(gone) == 0 {
		return nil, nil
	}
	for _, v := range gone {
		for _, u := range st.referrers(v, true) {
			if name != "" && u.subject != name {
				return nil, referredTo(v, u)
			}
		}
	}
	return st.erase(gone...), nil
}

func (s *Server) deleteMode(r *http.Request) (any, error) {
	name, err := scopeOf(r)
	if err != nil {
		return nil, err
	}
	var old modeBody
	err = s.write(r.Context(), func(st *state) ([]draft, error) {
		if name != "" && st.subjects[name].own().mode == "" {
			return nil, noSubject(name)
		}
		old.Mode = st.modeOf(name)
		return st.unset(keyMode, name), nil
	})
	return old, err
}
