package server

import (
	"net/http"
	"strings"

	"github.com/waybillhq/waybill/registry/compat"
)

type idAnswer struct {
	ID int `json:"id"`
}

// register gives a schema an id under a subject; one that is there already
// keeps its id and version.
func (s *Server) register(r *http.Request) (any, error) {
	c, err := s.readSchema(r)
	if err != nil {
		return nil, err
	}
	var out idAnswer
	name := r.PathValue("s")
	if err := checkSubject(name); err != nil {
		return nil, err
	}
	err = s.write(r.Context(), func(st *state) ([]draft, error) {
		var next *version
		if v := st.lookup(name, c, false); v != nil {
			out.ID = v.id
			return nil, nil
		}
		next, err := st.admit(name, c)
		if err != nil {
			return nil, err
		}
		out.ID = next.id
		return []draft{{schemaKey(name, next.number), next.value(false)}}, nil
	})
	return out, err
}

// lookup finds the newest version under a subject that says the same as c.
func (st *state) lookup(name string, c *content, deleted bool) *version {
	all := st.subjects[name].live(deleted)
	for i := len(all) - 1; i >= 0; i-- {
		if st.same(all[i].content, c) {
			return all[i]
		}
	}
	return nil
}

// admit makes the next version of a subject, if c may be it.
func (st *state) admit(name string, c *content) (*version, error) {
	level := st.levelOf(name)
	if reasons := st.check(level, c, st.subjects[name].live(false)); len(reasons) > 0 {
		return nil, refuse(codeIncompatible,
			"Schema being registered is incompatible with an earlier schema for subject \"%s\", compatibility level %s, details: [%s]",
			name, level, strings.Join(reasons, "; "))
	}
	next := &version{content: &content{text: c.text, refs: c.refs}, subject: name, number: 1}
	if s := st.subjects[name]; s != nil && len(s.versions) > 0 {
		next.number = s.versions[len(s.versions)-1].number + 1
	}
	id, known := st.ids[c.identity()]
	if !known {
		id = st.highest + 1
	}
	next.id = id
	return next, nil
}

// check says why c may not follow the earlier versions.
func (st *state) check(level compat.Level, c *content, earlier []*version) []string {
	if level == compat.None {
		return nil
	}
	candidate, err := st.compile(c)
	if err != nil {
		return []string{err.Error()}
	}
	if n := len(earlier); n > 0 && !level.Transitive() {
		earlier = earlier[n-1:]
	}
	var reasons []string
	parsed := make([]compat.Version, 0, len(earlier))
	for _, v := range earlier {
		schema, err := st.compile(v.content)
		if err != nil {
			reasons = append(reasons, unreadable(v, err))
			continue
		}
		parsed = append(parsed, compat.Version{Number: v.number, Schema: schema})
	}
	for _, reason := range compat.Check(level, candidate, parsed) {
		reasons = append(reasons, reason.String())
	}
	return reasons
}

// unreadable is a version an older or laxer registry took.
func unreadable(v *version, err error) string {
	return refuse(codeInvalidSchema, "version %d cannot be compared with, since it is no valid schema (%s); to mend, delete that version",
		v.number, err).Error()
}

type versionAnswer struct {
	Subject    string      `json:"subject"`
	Version    int         `json:"version"`
	ID         int         `json:"id"`
	Type       string      `json:"schemaType,omitempty"`
	References []reference `json:"references,omitempty"`
	Schema     string      `json:"schema"`
}

func (v *version) answer() versionAnswer {
	return versionAnswer{v.subject, v.number, v.id, v.kind, v.refs, v.text}
}

// lookup says under which version of a subject a schema is registered.
func (s *Server) lookup(r *http.Request) (any, error) {
	c, err := s.readSchema(r)
	if err != nil {
		return nil, err
	}
	name, deleted := r.PathValue("s"), flag(r, "deleted")
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if len(s.state.subjects[name].live(deleted)) == 0 {
		return nil, noSubject(name)
	}
	v := s.state.lookup(name, c, deleted)
	if v == nil {
		return nil, refuse(codeSchemaNotFound, "Schema not found")
	}
	return v.answer(), nil
}
