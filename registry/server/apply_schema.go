package server

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

func (st *state) takeSchema(at place, r *kgo.Record, mark stamp, stamped bool) bool {
	var in schemaValue
	gone := len(r.Value) == 0
	if !gone && json.Unmarshal(r.Value, &in) != nil {
		return true
	}
	old := st.find(at.subject, at.version)
	next := st.shared(in)
	if stamped && (!gone && next == nil || st.outdated(at, in, old, gone, mark)) {
		return false
	}
	s := st.subject(at.subject)
	s.touched = claim{r.Offset, mark.token}
	st.written = s.touched
	if gone {
		st.erased = s.touched
		st.drop(s, old)
		return true
	}
	if old != nil && old.content == next && old.deleted == in.Deleted {
		old.addKey(r.Key)
		return true
	}
	if next == nil {
		next = fromValue(in) // a registry that gave one id twice is served as it is
	}
	st.put(s, old, &version{content: next, subject: at.subject, number: at.version, deleted: in.Deleted, keys: [][]byte{r.Key}})
	return true
}

// outdated tells whether what a writer decided on has changed since: its
// subject, the global rules, what its schema refers to, or, where it deletes,
// who refers to that.
func (st *state) outdated(at place, in schemaValue, old *version, gone bool, mark stamp) bool {
	changed := func(name string) bool {
		s := st.subjects[name]
		return s != nil && s.touched.missed(mark)
	}
	if st.ruled.missed(mark) || changed(at.subject) {
		return true
	}
	if !gone && !in.Deleted {
		// A writer that slept while its id was given, and its schema then
		// deleted for good, must not give it again.
		return st.erased.missed(mark) || slices.ContainsFunc(in.References, func(ref reference) bool { return changed(ref.Subject) })
	}
	return old != nil && slices.ContainsFunc(st.referrers(old, gone), func(u *version) bool { return changed(u.subject) })
}

func fromValue(in schemaValue) *content {
	return &content{
		id: in.ID, kind: kindIn(in.Type), text: in.Schema, refs: in.References,
		metadata: present(in.Metadata), rules: present(in.Rules),
	}
}

// present is nil for what says nothing.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// shared is the content with the id of a value: the one there is, a new one,
// or nil if the id is another schema's.
func (st *state) shared(in schemaValue) *content {
	next := fromValue(in)
	there := st.byID[in.ID]
	if there == nil {
		return next
	}
	if there.identity() == next.identity() {
		return there
	}
	return nil
}

func (st *state) put(s *subject, old, v *version) {
	st.enter(v)
	if old == nil {
		i, _ := slices.BinarySearchFunc(s.versions, v.number, func(e *version, n int) int { return e.number - n })
		s.versions = slices.Insert(slices.Clone(s.versions), i, v)
		return
	}
	for _, k := range old.keys {
		v.addKey(k)
	}
	st.leave(old)
	s.versions = slices.Clone(s.versions)
	s.versions[slices.Index(s.versions, old)] = v
}

func (st *state) drop(s *subject, old *version) {
	if old == nil {
		return
	}
	s.versions = slices.DeleteFunc(slices.Clone(s.versions), func(v *version) bool { return v == old })
	st.leave(old)
}

func (v *version) addKey(key []byte) {
	if !slices.ContainsFunc(v.keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
		v.keys = append(v.keys, key)
	}
}

// takeDeleteSubject is how other registries delete a whole subject softly. We
// delete its versions one by one, which they understand as well.
func (st *state) takeDeleteSubject(r *kgo.Record) {
	var in deleteSubjectValue
	if len(r.Value) == 0 || json.Unmarshal(r.Value, &in) != nil {
		return
	}
	s := st.subjects[in.Subject]
	if s == nil {
		return
	}
	s.touched = claim{at: r.Offset}
	for _, v := range s.versions {
		if v.number <= in.Version && !v.deleted {
			gone := *v
			gone.deleted = true
			st.put(s, v, &gone)
		}
	}
}

// takeClearSubject is how Confluent forgets what was deleted softly, of one
// subject or of all.
func (st *state) takeClearSubject(r *kgo.Record) {
	var in clearSubjectValue
	if len(r.Value) == 0 || json.Unmarshal(r.Value, &in) != nil {
		return
	}
	for name, s := range st.subjects {
		if in.Subject != "" && name != in.Subject {
			continue
		}
		for _, v := range s.versions {
			if v.deleted {
				s.touched = claim{at: r.Offset}
				st.drop(s, v)
			}
		}
	}
}

func (v *version) value(deleted bool) []byte {
	return encode(schemaValue{
		Subject: v.subject, Version: v.number, ID: v.id, Type: v.kind, References: v.refs,
		Metadata: v.metadata, Rules: v.rules, Schema: v.text, Deleted: deleted,
	})
}
