package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// schemaRequest is a schema as a client sends it.
type schemaRequest struct {
	Schema     string          `json:"schema"`
	Type       string          `json:"schemaType"`
	References []reference     `json:"references"`
	Metadata   json.RawMessage `json:"metadata"`
	Rules      json.RawMessage `json:"ruleSet"`
	ID         int             `json:"id"`
	Version    int             `json:"version"`
}

// asked is a schema of a request, with the id and the version it shall have,
// 0 where the registry gives them.
type asked struct {
	*content
	id, number int
}

// readSchema reads the schema of a request for a subject.
func (s *Server) readSchema(r *http.Request) (asked, error) {
	var in schemaRequest
	if err := readBody(r, &in); err != nil {
		return asked{}, err
	}
	lang, err := languageOf(kindIn(in.Type))
	if err != nil {
		return asked{}, err
	}
	if strings.TrimSpace(in.Schema) == "" {
		return asked{}, refuse(codeInvalidSchema, "Empty schema")
	}
	if in.ID > math.MaxInt32 || in.Version > math.MaxInt32 {
		return asked{}, refuse(codeInvalidSchema, "An id and a version are at most 2^31-1")
	}
	for _, raw := range []json.RawMessage{present(in.Metadata), present(in.Rules)} {
		if raw != nil && raw[0] != '{' {
			return asked{}, refuse(codeInvalidSchema, "metadata and ruleSet must be JSON objects")
		}
	}
	c := &content{
		kind: kindIn(in.Type), text: lang.compact(in.Schema), refs: in.References,
		metadata: compactJSON(in.Metadata), rules: compactJSON(in.Rules),
	}
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if c = s.state.known(c); c.id == 0 { // else it was understood when it came, or must be found as it is
		if err := s.state.understand(c); err != nil {
			return asked{}, err
		}
	}
	out := asked{content: c, id: max(in.ID, 0), number: max(in.Version, 0)}
	name, err := subjectOf(r)
	if err == nil && (flag(r, "normalize") || s.state.normalizes(name)) {
		out.content, err = s.state.normalized(c)
	}
	return out, err
}

// known is the content that is kept already and says the same, letter by
// letter: it may have been read before.
func (st *state) known(c *content) *content {
	if there := st.byID[st.ids[c.identity()]]; there != nil {
		return there
	}
	return c
}

// understand reads a schema that a client sent, and what it refers to.
func (st *state) understand(c *content) error {
	for _, ref := range c.refs {
		if v := st.find(ref.Subject, ref.Version); v == nil || v.deleted {
			return refuse(codeInvalidSchema,
				"No schema reference found for subject \"%s\" and version %d; register it first", ref.Subject, ref.Version)
		}
	}
	if _, err := st.compile(c); err != nil {
		return refuse(codeInvalidSchema, "Invalid schema: %s", err)
	}
	return nil
}

// normalized is c in normal form. An Avro schema with references stays as it
// is: what they hold would become part of it.
func (st *state) normalized(c *content) (*content, error) {
	if len(c.refs) > 0 && c.kind == "" {
		return c, nil
	}
	if _, err := st.compile(c); err != nil {
		return c, nil //nolint:nilerr // what is kept and not understood is found as it is
	}
	text, err := c.normal()
	if err != nil {
		return c, nil //nolint:nilerr // a schema that has no normal form is its own
	}
	out := &content{kind: c.kind, text: text, refs: ordered(c.refs), metadata: c.metadata, rules: c.rules}
	return out, st.understand(out)
}

// ordered are references by subject and version, each once, as Confluent
// normalizes them.
func ordered(refs []reference) []reference {
	out := slices.Clone(refs)
	slices.SortStableFunc(out, func(a, b reference) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), a.Version-b.Version)
	})
	return slices.Compact(out)
}

// compactJSON leaves out the white space of an object that is kept as it came.
func compactJSON(raw json.RawMessage) json.RawMessage {
	var short bytes.Buffer
	if raw = present(raw); raw == nil || json.Compact(&short, raw) != nil {
		return raw
	}
	return short.Bytes()
}

// latestVersion stands for the highest version not deleted.
const latestVersion = -1

// versionOf reads the version of a path.
func versionOf(r *http.Request) (int, error) {
	v := r.PathValue("v")
	if v == "latest" || v == "-1" {
		return latestVersion, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, refuse(codeInvalidVersion, "The specified version '%.64s' is not a valid version id. "+
			"Allowed values are between [1, 2^31-1] and the string \"latest\"", v)
	}
	return n, nil
}

// pick finds the version that a request names.
func (st *state) pick(name string, number int, deleted bool) (*version, error) {
	all := st.subjects[name].live(deleted)
	if len(all) == 0 {
		return nil, noSubject(name)
	}
	if number == latestVersion {
		return all[len(all)-1], nil
	}
	v := st.find(name, number)
	if v == nil || v.deleted && !deleted {
		return nil, noVersion(strconv.Itoa(number))
	}
	return v, nil
}
