package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/waybillhq/waybill/registry/compat"
)

// registerAnswer is what became of a schema: all of it, as Confluent answers since
// version 8, since a client may have sent another text of the same meaning.
type registerAnswer struct {
	ID         int             `json:"id"`
	Version    int             `json:"version"`
	GUID       string          `json:"guid"`
	Type       string          `json:"schemaType,omitempty"`
	References []reference     `json:"references,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Rules      json.RawMessage `json:"ruleSet,omitempty"`
	Schema     string          `json:"schema,omitempty"`
}

// registered leaves out Protobuf's text. Clients keep what is answered in place
// of what they sent, and those that sent a descriptor would then find a text
// where they read descriptors.
func (v *version) registered() registerAnswer {
	text := v.text
	if v.kind == kindProtobuf {
		text = ""
	}
	return registerAnswer{v.id, v.number, v.guid().String(), v.kind, v.refs, v.metadata, v.rules, text}
}

// register gives a schema an id under a subject; one that is there already
// keeps its id and version.
func (s *Server) register(r *http.Request) (any, error) {
	name, err := subjectOf(r)
	if err != nil {
		return nil, err
	}
	in, err := s.readSchema(r)
	if err != nil {
		return nil, err
	}
	var out registerAnswer
	err = s.write(r.Context(), func(st *state) ([]draft, error) {
		if v := st.registered(name, in); v != nil {
			out = v.registered()
			return nil, nil
		}
		next, err := st.admit(name, in)
		if err != nil {
			return nil, err
		}
		out = next.registered()
		return []draft{{schemaKey(name, next.number), next.value(false)}}, nil
	})
	return out, err
}

// registered is the version that a request to register asks for, nil if it is
// still to be made.
func (st *state) registered(name string, in asked) *version {
	return st.lookup(name, in.content, false, func(v *version) bool {
		return (in.id == 0 || in.id == v.id) && (in.number == 0 || in.number == v.number)
	})
}

// lookup finds the newest version under a subject that says the same as c, of
// those that pick picks.
func (st *state) lookup(name string, c *content, deleted bool, pick func(*version) bool) *version {
	for _, v := range slices.Backward(st.subjects[name].live(deleted)) {
		if pick(v) && st.same(v.content, c) {
			return v
		}
	}
	return nil
}

func anyVersion(*version) bool { return true }

// admit makes the next version of a subject, if in may be it.
func (st *state) admit(name string, in asked) (*version, error) {
	mode := st.modeOf(name)
	switch {
	case mode.frozen():
		return nil, st.writable(name)
	case in.id > 0 && !mode.takesIDs():
		return nil, notPermitted(name, "is not in import mode, so its ids are given by the registry; leave the id out or set mode %s", importing)
	case in.id == 0 && mode != readWrite:
		return nil, notPermitted(name, "is not in read-write mode; send the schema's id, or set mode %s", readWrite)
	}
	if err := st.understand(in.content); err != nil {
		return nil, err
	}
	c := st.heir(name, in.content)
	next := &version{content: &content{kind: c.kind, text: c.text, refs: c.refs, metadata: c.metadata, rules: c.rules}, subject: name, number: 1}
	if s := st.subjects[name]; s != nil && len(s.versions) > 0 {
		next.number = s.versions[len(s.versions)-1].number + 1
	}
	if mode.takesIDs() {
		return next, st.importAs(next, in)
	}
	if next.number > math.MaxInt32 {
		return nil, refuse(codeInvalidSchema, "All versions of subject '%s' up to 2^31-1 are given", name)
	}
	if in.number > 0 && in.number != next.number {
		return nil, refuse(codeInvalidSchema, "Version is not one more than previous version; the next one is %d", next.number)
	}
	level := st.levelOf(name)
	if reasons := st.check(level, c, st.subjects[name].live(false)); len(reasons) > 0 {
		return nil, refuse(codeIncompatible,
			"Schema being registered is incompatible with an earlier schema for subject \"%s\", compatibility level %s, details: [%s]",
			name, level, strings.Join(reasons, "; "))
	}
	next.id = st.ids[next.identity()]
	if next.id == 0 && st.highest >= math.MaxInt32 {
		return nil, refuse(codeStore, "All ids up to 2^31-1 are given")
	}
	next.id = cmp.Or(next.id, st.highest+1)
	return next, nil
}

// heir is c with the metadata and rules of the latest version, if it has none
// of its own: who registers a schema without them does not mean to end them.
func (st *state) heir(name string, c *content) *content {
	live := st.subjects[name].live(false)
	if len(live) == 0 || !c.plain() {
		return c
	}
	latest := live[len(live)-1]
	if latest.plain() {
		return c
	}
	return &content{kind: c.kind, text: c.text, refs: c.refs, metadata: latest.metadata, rules: latest.rules}
}

// importAs gives a version the id and the number it has elsewhere.
func (st *state) importAs(next *version, in asked) error {
	next.id = in.id
	if in.number > 0 {
		next.number = in.number
	}
	if there := st.byID[in.id]; there != nil && there.identity() != next.identity() {
		return refuse(codeNotPermitted, "Overwrite new schema with id %d in context . is not permitted.", in.id)
	}
	if there := st.find(next.subject, next.number); there != nil && !there.deleted {
		return notPermitted(next.subject, "has another schema as version %d; delete that version first", next.number)
	}
	return nil
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
	understood := make([]numbered, 0, len(earlier))
	for _, v := range earlier {
		m, err := st.compile(v.content)
		switch {
		case err != nil:
			reasons = append(reasons, unreadable(v, err))
		case v.kind != c.kind:
			reasons = append(reasons, refuse(codeIncompatible, "version %d is a schema of another type", v.number).Error())
		default:
			understood = append(understood, numbered{v.number, m})
		}
	}
	return few(append(reasons, candidate.follows(level, understood)...))
}

// reasonLimit bounds what is told about a subject of many versions.
const reasonLimit = 20

func few(reasons []string) []string {
	if len(reasons) <= reasonLimit {
		return reasons
	}
	return append(reasons[:reasonLimit], fmt.Sprintf("and %d more, of the same or other versions", len(reasons)-reasonLimit))
}

// unreadable is a version an older or laxer registry took.
func unreadable(v *version, err error) string {
	return refuse(codeInvalidSchema, "version %d cannot be compared with, since it is no valid schema (%s); to mend, delete that version",
		v.number, err).Error()
}
