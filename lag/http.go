package lag

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Handler answers GET
//
//	/v1/lag           the last snapshot, without partitions
//	/v1/lag/GROUP     a group with its partitions
//	/v1/scale/GROUP   how large it should be, for an autoscaler: "replicas"
//
// as JSON; 404 for a group it does not know, 503 before the first round and
// where the number of replicas asked for cannot be known. It asks for no key:
// keep it from strangers.
func (m *Monitor) Handler(goal func(group string) Goal) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/lag", func(w http.ResponseWriter, _ *http.Request) {
		s := m.Latest()
		if s == nil {
			fail(w, http.StatusServiceUnavailable, "no look at the groups has ended yet: ask again in some seconds")
			return
		}
		short := *s
		short.Groups = make([]Group, len(s.Groups))
		for i, g := range s.Groups {
			g.Partitions = nil
			short.Groups[i] = g
		}
		answer(w, http.StatusOK, short)
	})
	mux.HandleFunc("GET /v1/lag/{group...}", func(w http.ResponseWriter, r *http.Request) {
		if g := m.asked(w, r); g != nil {
			answer(w, http.StatusOK, g)
		}
	})
	mux.HandleFunc("GET /v1/scale/{group...}", func(w http.ResponseWriter, r *http.Request) {
		g := m.asked(w, r)
		switch {
		case g == nil:
		case g.Members == nil:
			// An autoscaler keeps its number while it is not answered; a made-up
			// one would shrink the group in the middle of an outage.
			fail(w, http.StatusServiceUnavailable, "how many members the group has is unknown: "+g.Error)
		default:
			answer(w, http.StatusOK, Advise(g, goal(g.Name)))
		}
	})
	return mux
}

func (m *Monitor) asked(w http.ResponseWriter, r *http.Request) *Group {
	s, name := m.Latest(), strings.TrimSpace(r.PathValue("group"))
	if s == nil {
		fail(w, http.StatusServiceUnavailable, "no look at the groups has ended yet: ask again in some seconds")
		return nil
	}
	if g := s.Group(name); g != nil {
		return g
	}
	fail(w, http.StatusNotFound, "there is no such group, or it has read nothing; GET /v1/lag lists them")
	return nil
}

// Group is a group by name, nil if there is none.
func (s *Snapshot) Group(name string) *Group {
	for i := range s.Groups {
		if s.Groups[i].Name == name {
			return &s.Groups[i]
		}
	}
	return nil
}

func fail(w http.ResponseWriter, status int, text string) {
	answer(w, status, map[string]string{"error": text})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client left: nobody to tell
}
