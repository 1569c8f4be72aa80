package lag

import "time"

// stand is where a group is on a partition, by all that a survey was told.
type stand struct {
	start, committed, end *int64
	ours                  bool
	from                  *int64    // where it reads next; nil: unknown
	saved                 time.Time // when the database last heard that it moved
	lost                  int64     // went before it was read
	fault                 string    // what is wrong with the committed place
	rewound               bool      // the group begins the partition again
}

// places is every partition that a group reads: of its topics all there are,
// and those it once committed to.
func (v *survey) places(g *told) map[spot]bool {
	out := map[spot]bool{}
	for name := range g.reads {
		if t := v.topics[name]; t != nil {
			for p := range t.leaders {
				out[spot{name, p}] = true
			}
		}
	}
	for at := range g.commits {
		out[at] = true
	}
	for at := range g.marks {
		out[at] = true
	}
	return out
}

// stand works out where a group is. A group that keeps its place in the
// database begins at the start of what has no mark, and of a topic that was
// made anew or cut back: package consumer does. What another group does there
// is its own setting, and unknown.
func (v *survey) stand(g *told, at spot) stand {
	s := stand{start: known(v.starts, at), end: known(v.ends, at)}
	s.ours = g.ours[at.topic]
	if s.ours && v.database != nil {
		s.fault = "the database, which knows its place, does not answer"
		return s
	}
	if s.start == nil || s.end == nil {
		return s
	}
	if s.ours {
		return v.standOurs(g, at, s)
	}
	commit, ok := g.commits[at]
	switch {
	case !ok && *s.start == *s.end:
		s.from = s.end
	case !ok:
		s.fault = "it never committed here; where it begins is its own setting"
	case commit > *s.end:
		s.committed = &commit
		s.fault = "the topic ends before the committed offset: it was made anew or cut back"
	default:
		s.committed = &commit
		s.begin(commit)
	}
	return s
}

func (v *survey) standOurs(g *told, at spot, s stand) stand {
	w, ok := g.marks[at]
	if !ok {
		s.from = s.start
		return s
	}
	s.committed, s.saved = &w.next, w.saved
	switch {
	case w.topicID != v.topics[at.topic].id:
		s.from, s.rewound, s.fault = s.start, true, "the topic was made anew, and is read from its start"
	case w.next > *s.end:
		s.from, s.rewound, s.fault = s.start, true, "the topic ends before its place, and is read from its start"
	default:
		s.begin(w.next)
	}
	return s
}

// begin is at a place that may be gone already.
func (s *stand) begin(place int64) {
	s.lost = max(0, *s.start-place)
	from := max(place, *s.start)
	s.from = &from
}

func known(m map[spot]int64, at spot) *int64 {
	if n, ok := m[at]; ok {
		return &n
	}
	return nil
}
