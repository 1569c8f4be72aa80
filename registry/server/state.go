package server

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/waybillhq/waybill/registry/compat"
)

// state is the topic as far as it was read. Only the follower changes it.
type state struct {
	mu       sync.RWMutex
	subjects map[string]*subject
	byID     map[int]*content
	ids      map[string]int // by identity
	level    compat.Level   // global
	fallback compat.Level   // global, where the topic says nothing
	highest  int            // id ever given
	last     int64          // offset read last, -1 before the first
	dirty    map[string]place
	seen     map[string]struct{} // keys of records, as spelled
}

type subject struct {
	name     string
	versions []*version   // ascending, deleted ones too
	level    compat.Level // "" for the global one
	touched  int64        // offset of the last record that changed it
	by       string       // token of that record
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
		ids:      map[string]int{},
		level:    fallback,
		fallback: fallback,
		last:     -1,
		dirty:    map[string]place{},
		seen:     map[string]struct{}{},
	}
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

// names are the subjects with a version that pick picks, in order.
func (st *state) names(pick func(*subject) bool) []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(st.subjects)) {
		if pick(st.subjects[name]) {
			out = append(out, name)
		}
	}
	return out
}

// live are the versions not deleted; with deleted, all.
func (s *subject) live(deleted bool) []*version {
	if s == nil {
		return nil
	}
	if deleted {
		return s.versions
	}
	return slices.DeleteFunc(slices.Clone(s.versions), func(v *version) bool { return v.deleted })
}

// levelOf is the level that holds for a subject.
func (st *state) levelOf(name string) compat.Level {
	if s := st.subjects[name]; s != nil && s.level != "" {
		return s.level
	}
	return st.level
}

// users are the versions with an id, by subject and number.
func (st *state) users(id int, deleted bool) []*version {
	return st.where(func(v *version) bool { return v.id == id && (deleted || !v.deleted) })
}

// referrers are the versions, not deleted, that refer to v.
func (st *state) referrers(v *version) []*version {
	return st.where(func(u *version) bool {
		return !u.deleted && slices.ContainsFunc(u.refs, func(r reference) bool {
			return r.Subject == v.subject && r.Version == v.number
		})
	})
}

func (st *state) where(pick func(*version) bool) []*version {
	var out []*version
	for _, s := range st.subjects {
		for _, v := range s.versions {
			if pick(v) {
				out = append(out, v)
			}
		}
	}
	slices.SortFunc(out, func(a, b *version) int {
		return cmp.Or(strings.Compare(a.subject, b.subject), a.number-b.number)
	})
	return out
}
