package server

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// each are the subjects whose name begins with prefix, in order. The order is
// made once for many lists: sorting a hundred thousand names costs more than
// all else that a list does.
func (st *state) each(prefix string) iter.Seq[*subject] {
	all := st.names.Load()
	if all == nil {
		sorted := slices.Sorted(maps.Keys(st.subjects))
		all = &sorted
		st.names.Store(all) // two readers at once make the same list
	}
	return func(yield func(*subject) bool) {
		from, _ := slices.BinarySearch(*all, prefix)
		for _, name := range (*all)[from:] {
			if !strings.HasPrefix(name, prefix) || !yield(st.subjects[name]) {
				return
			}
		}
	}
}

// list are the names of those subjects that pick picks.
func (st *state) list(prefix string, pick func(*subject) bool) []string {
	out := []string{}
	for s := range st.each(prefix) {
		if pick(s) {
			out = append(out, s.name)
		}
	}
	return out
}

// enter adds a version to the indexes.
func (st *state) enter(v *version) {
	c := v.content
	if st.byID[c.id] == nil {
		st.byID[c.id] = c
		// The first id of a content stays its id.
		if id := c.identity(); st.ids[id] == 0 {
			st.ids[id] = c.id
		}
		if guid := c.guid(); st.guids[guid] == 0 {
			st.guids[guid] = c.id
		}
	}
	st.highest = max(st.highest, c.id)
	c.users++
	st.used[c.id] = append(st.used[c.id], v)
	for to := range targets(c) {
		st.refer[to] = append(st.refer[to], v)
	}
}

// leave takes a version out of the indexes, and forgets a content without
// users. Its id is not given again.
func (st *state) leave(v *version) {
	c := v.content
	take(st.used, c.id, v)
	for to := range targets(c) {
		take(st.refer, to, v)
	}
	c.users--
	if c.users > 0 || st.byID[c.id] != c {
		return
	}
	delete(st.byID, c.id)
	if id := c.identity(); st.ids[id] == c.id {
		delete(st.ids, id)
	}
	if guid := c.guid(); st.guids[guid] == c.id {
		delete(st.guids, guid)
	}
}

// take makes a new slice: readers may hold the old one.
func take[K comparable](index map[K][]*version, key K, v *version) {
	left := slices.DeleteFunc(slices.Clone(index[key]), func(u *version) bool { return u == v })
	if len(left) == 0 {
		delete(index, key)
		return
	}
	index[key] = left
}

func targets(c *content) map[target]struct{} {
	if len(c.refs) == 0 {
		return nil
	}
	out := map[target]struct{}{}
	for _, r := range c.refs {
		out[target{r.Subject, r.Version}] = struct{}{}
	}
	return out
}

// users are the versions with an id, by subject and number.
func (st *state) users(id int, deleted bool) []*version { return pickSorted(st.used[id], deleted) }

// referrers are the versions that refer to v, by subject and number.
func (st *state) referrers(v *version, deleted bool) []*version {
	return pickSorted(st.refer[target{v.subject, v.number}], deleted)
}

func pickSorted(all []*version, deleted bool) []*version {
	var out []*version
	for _, v := range all {
		if deleted || !v.deleted {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *version) int {
		return cmp.Or(strings.Compare(a.subject, b.subject), a.number-b.number)
	})
	return out
}
