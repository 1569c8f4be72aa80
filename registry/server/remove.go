package server

import (
	"net/http"
	"slices"
	"strconv"
)

// deleteSubject deletes every version of a subject: softly, so that ids still
// resolve, or permanently what was deleted softly before.
func (s *Server) deleteSubject(r *http.Request) (any, error) {
	name, err := subjectOf(r)
	if err != nil {
		return nil, err
	}
	numbers := []int{}
	permanent := flag(r, "permanent")
	err = s.write(r.Context(), func(st *state) ([]draft, error) {
		versions, err := st.deletable(name, permanent)
		if err != nil {
			return nil, err
		}
		numbers = numbers[:0]
		for _, v := range versions {
			numbers = append(numbers, v.number)
		}
		return st.remove(permanent, versions...)
	})
	return numbers, err
}

func (st *state) deletable(name string, permanent bool) ([]*version, error) {
	all, live := st.subjects[name].live(true), st.subjects[name].live(false)
	switch {
	case len(all) == 0:
		return nil, noSubject(name)
	case permanent && len(live) > 0:
		return nil, refuse(codeSubjectNotSoftDeleted, "Subject '%s' was not deleted first before being permanently deleted", name)
	case permanent:
		return all, nil
	case len(live) == 0:
		return nil, refuse(codeSubjectSoftDeleted, "Subject '%s' was soft deleted. Set permanent=true to delete permanently", name)
	}
	return live, nil
}

// deleteVersion deletes one version, as deleteSubject does.
func (s *Server) deleteVersion(r *http.Request) (any, error) {
	number, err := versionOf(r)
	if err != nil {
		return nil, err
	}
	name, err := subjectOf(r)
	if err != nil {
		return nil, err
	}
	permanent := flag(r, "permanent")
	var deleted int
	err = s.write(r.Context(), func(st *state) ([]draft, error) {
		v, err := st.pick(name, number, permanent || number != latestVersion)
		if err != nil {
			return nil, err
		}
		deleted = v.number
		switch {
		case permanent && !v.deleted:
			return nil, refuse(codeVersionNotSoftDeleted, "Subject '%s' Version %d was not deleted first before being permanently deleted", name, v.number)
		case !permanent && v.deleted:
			return nil, refuse(codeVersionSoftDeleted, "Subject '%s' Version %d was soft deleted. Set permanent=true to delete permanently", name, v.number)
		}
		return st.remove(permanent, v)
	})
	return text(strconv.Itoa(deleted)), err
}

// remove deletes versions of one subject, the newest first since it may refer
// to older ones. What refers to one from elsewhere keeps it: softly deleted it
// must not be used anew, for good it could no longer be read.
func (st *state) remove(permanent bool, versions ...*version) ([]draft, error) {
	if err := st.writable(versions[0].subject); err != nil {
		return nil, err
	}
	for _, v := range versions {
		for _, u := range st.referrers(v, permanent) {
			if !slices.Contains(versions, u) {
				return nil, referredTo(v, u)
			}
		}
	}
	newestFirst := slices.Clone(versions)
	slices.Reverse(newestFirst)
	if permanent {
		out := st.erase(newestFirst...)
		if name := versions[0].subject; len(versions) == len(st.subjects[name].versions) { // the last ones
			out = append(out, st.unset(keyConfig, name)...)
			out = append(out, st.unset(keyMode, name)...)
		}
		return out, nil
	}
	var out []draft
	for _, v := range newestFirst {
		out = append(out, draft{v.keys[0], v.value(true)})
	}
	return out, nil
}

func referredTo(v, by *version) error {
	return refuse(codeReferenceExists,
		"One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=%s,version=%d}, the first from subject %s version %d; delete that first",
		v.subject, v.number, by.subject, by.number)
}

// erase deletes versions for good, under every spelling of their keys: where
// the topic is compacted, one left over would rise again.
func (st *state) erase(versions ...*version) []draft {
	// First, so that no moment and no crash leaves the highest id unknown.
	out := []draft{{highestKey(), encode(noopValue{st.highest})}}
	for _, v := range versions {
		for _, key := range v.keys {
			out = append(out, draft{key, nil})
		}
	}
	return out
}

// unset deletes what was set under a key, in every spelling; nothing if
// nothing is set.
func (st *state) unset(kind, subject string) []draft {
	if st.current(place{kind: kind, subject: subject}) == nil {
		return nil
	}
	key := ruleKey(kind, subject)
	out := []draft{{key, nil}}
	for _, other := range st.spelled[string(key)] {
		out = append(out, draft{other, nil})
	}
	return out
}
