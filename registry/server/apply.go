package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/registry/compat"
)

// place is what a key speaks of.
type place struct {
	kind, subject string
	version       int
	key           []byte
}

// apply takes in the next record of the topic and says whether it holds.
//
// Servers do not know of each other, so the order of the topic decides: a
// stamped record holds only if its subject is still as its writer saw it and
// its id is not another schema's. Every server that reads the topic comes to
// the same verdict. A refused record may hide, where the topic is compacted,
// the one that holds under its key: such a place is dirty until it is written
// again, see repair.
func (st *state) apply(r *kgo.Record) (holds bool) {
	st.last = r.Offset
	var key recordKey
	if json.Unmarshal(r.Key, &key) != nil {
		return true // not a registry's; Confluent passes it over too
	}
	at := place{kind: key.Type, version: key.Version, key: r.Key}
	if key.Subject != nil {
		at.subject = *key.Subject
	}
	mark, stamped := readStamp(r)
	holds = st.take(at, r, mark, stamped)
	if stamped && (at.kind == keySchema || at.kind == keyConfig) {
		st.track(at, holds, mark.intent == void)
	}
	st.seen[string(r.Key)] = struct{}{}
	return holds
}

// track keeps the book of places where the last record is not what holds.
func (st *state) track(at place, holds, voided bool) {
	if !holds || (voided && st.current(at) != nil) {
		st.dirty[string(at.key)] = at
		return
	}
	delete(st.dirty, string(at.key))
}

func (st *state) take(at place, r *kgo.Record, mark stamp, stamped bool) bool {
	switch mark.intent {
	case void:
		return true
	case keep:
		return st.keep(at, r, mark)
	case change:
	}
	switch at.kind {
	case keySchema:
		return st.takeSchema(at, r, mark, stamped)
	case keyConfig:
		return st.takeConfig(at, r, mark, stamped)
	case keyDeleteSubject:
		st.takeDeleteSubject(r)
	case keyNoop:
		var v noopValue
		if json.Unmarshal(r.Value, &v) == nil {
			st.highest = max(st.highest, v.HighestID)
		}
	}
	return true
}

// keep confirms what holds. It changes nothing, so nothing that was written
// meanwhile is refused for it; and where compaction has taken the record that
// it confirms, which leaves it the first of its key, it stands in for that.
func (st *state) keep(at place, r *kgo.Record, mark stamp) bool {
	if bytes.Equal(st.current(at), r.Value) {
		return true
	}
	if _, seen := st.seen[string(r.Key)]; seen {
		return false
	}
	touched, by := int64(-1), ""
	if s := st.subjects[at.subject]; s != nil {
		touched, by = s.touched, s.by
	}
	mark.intent = change
	st.take(at, r, mark, false)
	if s := st.subjects[at.subject]; s != nil {
		s.touched, s.by = touched, by
	}
	return true
}

// touch claims a subject for a record, false if the record was written
// without knowing what came between.
func (st *state) touch(name string, r *kgo.Record, mark stamp, stamped bool) (*subject, bool) {
	s := st.subjects[name]
	if s == nil {
		s = &subject{name: name, touched: -1}
		st.subjects[name] = s
	}
	if stamped && s.touched > mark.after && s.by != mark.token {
		return s, false
	}
	s.touched, s.by = r.Offset, mark.token
	return s, true
}

func (st *state) takeSchema(at place, r *kgo.Record, mark stamp, stamped bool) bool {
	var in schemaValue
	gone := len(r.Value) == 0
	if !gone && json.Unmarshal(r.Value, &in) != nil {
		return true
	}
	old := st.find(at.subject, at.version)
	next := st.shared(in)
	if stamped && !gone && next == nil {
		return false // the id is another schema's
	}
	s, ok := st.touch(at.subject, r, mark, stamped)
	if !ok {
		return false
	}
	if gone {
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

func fromValue(in schemaValue) *content {
	kind := in.Type
	if kind == kindAvro {
		kind = ""
	}
	return &content{id: in.ID, kind: kind, text: in.Schema, refs: in.References}
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
	if st.byID[v.id] == nil {
		st.byID[v.id] = v.content
		// The first id of a content stays its id.
		if _, taken := st.ids[v.identity()]; !taken {
			st.ids[v.identity()] = v.id
		}
	}
	st.highest = max(st.highest, v.id)
	v.users++
	if old == nil {
		i, _ := slices.BinarySearchFunc(s.versions, v.number, func(e *version, n int) int { return e.number - n })
		s.versions = slices.Insert(slices.Clone(s.versions), i, v)
		return
	}
	for _, k := range old.keys {
		v.addKey(k)
	}
	st.release(old.content)
	s.versions = slices.Clone(s.versions)
	s.versions[slices.Index(s.versions, old)] = v
}

func (st *state) drop(s *subject, old *version) {
	if old == nil {
		return
	}
	s.versions = slices.DeleteFunc(slices.Clone(s.versions), func(v *version) bool { return v == old })
	st.release(old.content)
}

// release forgets a content without users. Its id is not given again.
func (st *state) release(c *content) {
	c.users--
	if c.users > 0 || st.byID[c.id] != c {
		return
	}
	delete(st.byID, c.id)
	if st.ids[c.identity()] == c.id {
		delete(st.ids, c.identity())
	}
}

func (v *version) addKey(key []byte) {
	if !slices.ContainsFunc(v.keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
		v.keys = append(v.keys, key)
	}
}

func (st *state) takeConfig(at place, r *kgo.Record, mark stamp, stamped bool) bool {
	var in configValue
	if len(r.Value) > 0 && json.Unmarshal(r.Value, &in) != nil {
		return true
	}
	level, known := compat.ParseLevel(in.Level)
	if !known {
		level = "" // the record deletes the level, or is beyond us
	}
	if at.subject == "" {
		st.level = cmp.Or(level, st.fallback)
		return true
	}
	s, ok := st.touch(at.subject, r, mark, stamped)
	if ok {
		s.level = level
	}
	return ok
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
	s.touched, s.by = r.Offset, ""
	for _, v := range s.versions {
		if v.number <= in.Version && !v.deleted {
			gone := *v
			gone.deleted = true
			s.versions = slices.Clone(s.versions)
			s.versions[slices.Index(s.versions, v)] = &gone
		}
	}
}

// current is what the topic should end with under a key, nil if nothing.
func (st *state) current(at place) []byte {
	switch at.kind {
	case keySchema:
		if v := st.find(at.subject, at.version); v != nil {
			return v.value(v.deleted)
		}
	case keyConfig:
		if at.subject == "" {
			return nil
		}
		if s := st.subjects[at.subject]; s != nil && s.level != "" {
			return encode(configValue{string(s.level)})
		}
	}
	return nil
}

func (v *version) value(deleted bool) []byte {
	return encode(schemaValue{
		Subject: v.subject, Version: v.number, ID: v.id, Type: v.kind,
		References: v.refs, Schema: v.text, Deleted: deleted,
	})
}
