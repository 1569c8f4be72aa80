package server

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/registry/compat"
)

// state is the topic as far as it was read. Only the follower changes it.
type state struct {
	mu       sync.RWMutex
	subjects map[string]*subject
	byID     map[int]*content
	ids      map[digest]int
	guids    map[uuid.UUID]int
	used     map[int][]*version    // by id
	refer    map[target][]*version // by what they refer to
	rules    rules                 // global
	fallback compat.Level          // global, where the topic says nothing
	highest  int                   // id ever given
	last     int64                 // offset read last, -1 before the first
	ruled    claim                 // of the global rules
	written  claim                 // of any schema
	erased   claim                 // of any schema, for good
	dirty    map[string]place
	seen     map[string]struct{} // keys of records, as spelled
	spelled  map[string][][]byte // other spellings of the keys of rules
	names    atomic.Pointer[[]string]
}

// target is a version as references name it.
type target struct {
	subject string
	number  int
}

// claim is the last record that changed something.
type claim struct {
	at int64  // offset, -1 for none
	by string // token of its write
}

// missed tells whether a writer did not know of the change.
func (c claim) missed(mark stamp) bool { return c.at > mark.after && c.by != mark.token }

type subject struct {
	name     string
	versions []*version // ascending, deleted ones too
	rules
	touched claim
}

type version struct {
	*content
	subject string
	number  int
	deleted bool
	keys    [][]byte // every spelling of its key seen in the topic
}

func newState(fallback compat.Level) *state {
	return &state{
		subjects: map[string]*subject{},
		byID:     map[int]*content{},
		ids:      map[digest]int{},
		guids:    map[uuid.UUID]int{},
		used:     map[int][]*version{},
		refer:    map[target][]*version{},
		fallback: fallback,
		last:     -1,
		ruled:    claim{at: -1},
		written:  claim{at: -1},
		erased:   claim{at: -1},
		dirty:    map[string]place{},
		seen:     map[string]struct{}{},
		spelled:  map[string][][]byte{},
	}
}

// subject finds or makes a subject.
func (st *state) subject(name string) *subject {
	s := st.subjects[name]
	if s == nil {
		s = &subject{name: name, touched: claim{at: -1}}
		st.subjects[name] = s
		st.names.Store(nil)
	}
	return s
}

// find is a version, deleted or not, nil if there is none.
func (st *state) find(name string, number int) *version {
	s := st.subjects[name]
	if s == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(s.versions, number, func(v *version, n int) int { return v.number - n })
	if !ok {
		return nil
	}
	return s.versions[i]
}

// live are the versions not deleted; with deleted, all.
func (s *subject) live(deleted bool) []*version {
	if s == nil {
		return nil
	}
	if deleted || !slices.ContainsFunc(s.versions, func(v *version) bool { return v.deleted }) {
		return s.versions
	}
	return slices.DeleteFunc(slices.Clone(s.versions), func(v *version) bool { return v.deleted })
}

// alive is whether a version is left that is not deleted.
func (s *subject) alive() bool {
	return s != nil && slices.ContainsFunc(s.versions, func(v *version) bool { return !v.deleted })
}
