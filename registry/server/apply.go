package server

import (
	"bytes"
	"encoding/json"

	"github.com/twmb/franz-go/pkg/kgo"
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
// stamped record holds only if its subject, what it refers to and the global
// rules are still as its writer saw them, and its id is not another schema's.
// Every server that reads the topic comes to the same verdict. A refused
// record may hide, where the topic is compacted, the one that holds under its
// key: such a place is dirty until it is written again, see repair.
//
// Each ground to refuse must stay sound when compaction has taken records out
// from before: fewer records may only make fewer grounds.
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
	if stamped && (at.kind == keySchema || at.kind == keyConfig || at.kind == keyMode) {
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
	case keyConfig, keyMode:
		return st.takeRules(at, r, mark, stamped)
	case keyDeleteSubject:
		st.takeDeleteSubject(r)
	case keyClearSubject:
		st.takeClearSubject(r)
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
	touched, ruled, written, erased := claim{at: -1}, st.ruled, st.written, st.erased
	if s := st.subjects[at.subject]; s != nil {
		touched = s.touched
	}
	mark.intent = change
	st.take(at, r, mark, false)
	st.ruled, st.written, st.erased = ruled, written, erased
	if s := st.subjects[at.subject]; s != nil {
		s.touched = touched
	}
	return true
}

// current is what the topic should end with under a key, nil if nothing.
func (st *state) current(at place) []byte {
	switch at.kind {
	case keySchema:
		if v := st.find(at.subject, at.version); v != nil {
			return v.value(v.deleted)
		}
	case keyConfig, keyMode:
		r := st.rules
		if at.subject != "" {
			r = st.subjects[at.subject].own()
		}
		return r.value(at.kind, at.subject)
	}
	return nil
}
