package server

import (
	"net/http"
	"strconv"
)

// deleteSubject deletes every version of a subject: softly, so that ids still
// resolve, or permanently what was deleted softly before.
func (s *Server) deleteSubject(r *http.Request) (any, error) {
	name := r.PathValue("s")
	numbers := []int{}
	err := s.write(r.Context(), func(st *state) ([]draft, error) {
		versions, err := st.deletable(name, flag(r, "permanent"))
		if err != nil {
			return nil, err
		}
		numbers = numbers[:0]
		for _, v := range versions {
			numbers = append(numbers, v.number)
		}
		if flag(r, "permanent") {
			return st.erase(versions...), nil
		}
		return st.hide(name, versions...)
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
	name, permanent := r.PathValue("s"), flag(r, "permanent")
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
		case permanent:
			return st.erase(v), nil
		case v.deleted:
			return nil, refuse(codeVersionSoftDeleted, "Subject '%s' Version %d was soft deleted. Set permanent=true to delete permanently", name, v.number)
		}
		return st.hide("", v)
	})
	return text(strconv.Itoa(deleted)), err
}

// hide deletes versions softly, and with the last of a subject, named then,
// its level.
func (st *state) hide(subject string, versions ...*version) ([]draft, error) {
	var out []draft
	for _, v := range versions {
		if users := st.referrers(v); len(users) > 0 {
			return nil, refuse(codeReferenceExists, "One or more references exist to the schema {subject=%s,version=%d}, the first from subject %s version %d",
				v.subject, v.number, users[0].subject, users[0].number)
		}
		out = append(out, draft{v.keys[0], v.value(true)})
	}
	if s := st.subjects[subject]; s != nil && s.level != "" {
		out = append(out, draft{configKey(subject), nil})
	}
	return out, nil
}

// erase deletes versions for good, under every spelling of their keys: where
// the topic is compacted, one left over would rise again.
func (st *state) erase(versions ...*version) []draft {
	// First, so that no moment and no crash leaves the highest id unknown.
	out := []draft{{noopKey(), encode(noopValue{st.highest})}}
	for _, v := range versions {
		for _, key := range v.keys {
			out = append(out, draft{key, nil})
		}
	}
	return out
}
