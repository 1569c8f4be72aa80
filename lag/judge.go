package lag

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// judgeAll makes a snapshot of what a survey was told and what is remembered.
// While the broker is away the groups of before are there, with nothing known.
func (m *Monitor) judgeAll(v *survey) *Snapshot {
	s := &Snapshot{At: v.at, Groups: []Group{}, Error: v.problem()}
	for name := range m.memory.groups {
		if v.groups[name] == nil { // only if it may still be there: see memory.see
			v.groups[name] = m.absent(name)
		}
	}
	left := m.cfg.MaxPartitions
	for _, name := range slices.Sorted(maps.Keys(v.groups)) {
		g := v.groups[name]
		places := slices.SortedFunc(maps.Keys(m.placesOf(v, g)), func(a, b spot) int {
			return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
		})
		if len(places) == 0 {
			continue // it reads nothing
		}
		if len(places) > left {
			s.LeftOut += len(places)
			continue
		}
		left -= len(places)
		s.Groups = append(s.Groups, m.judgeGroup(v, g, places))
	}
	return s
}

// absent is a group that nobody could tell of in this round.
func (m *Monitor) absent(name string) *told {
	if last := m.memory.groups[name].seen; last != nil {
		return &told{name: name, reads: last.reads, marks: last.marks, ours: last.ours, parked: map[spot]*Blocked{}}
	}
	return &told{name: name, parked: map[spot]*Blocked{}}
}

// placesOf adds those of before while the survey is not sure to know all.
func (m *Monitor) placesOf(v *survey, g *told) map[spot]bool {
	places := v.places(g)
	if v.problem() != "" || g.err != nil {
		for at := range m.memory.group(g.name).pairs {
			places[at] = true
		}
		// Whose place is in the database is not the broker's to tell.
		if last := m.memory.group(g.name).seen; v.database != nil && last != nil && g.marks == nil {
			g.marks, g.ours = last.marks, last.ours
		}
	}
	return places
}

func (m *Monitor) judgeGroup(v *survey, g *told, places []spot) Group {
	mem := m.memory.group(g.name)
	out := Group{Name: g.name, Members: g.members, State: OK, Lag: new(int64), Exact: true, In: new(float64), Out: new(float64)}
	if g.err != nil {
		out.Error = g.err.Error()
	}
	tracks := make(map[spot]*track, len(places))
	for _, at := range places {
		t := mem.track(at)
		tracks[at] = t
		p := m.judge(v, g, at, t)
		out.add(p)
		out.Partitions = append(out.Partitions, p)
	}
	mem.pairs = tracks
	if v.broker == nil && v.database == nil && g.err == nil {
		mem.seen = g
	}
	out.Drain = drainIn(out.Lag, out.In, out.Out)
	m.countParked(v, g, &out)
	out.DeadLetters = v.deadLetters(g.name)
	out.Capacity = mem.capable(&out)
	out.History = mem.remember(Moment{v.at, out.Lag, out.Seconds})
	return out
}

func (m *Monitor) judge(v *survey, g *told, at spot, t *track) Partition {
	s := v.stand(g, at)
	p := Partition{
		Group: g.name, Topic: at.topic, Partition: at.partition,
		Start: s.start, Committed: s.committed, End: s.end, Ours: s.ours, Blocked: g.parked[at],
		Error: v.why(g, at, s),
	}
	c := circumstance{now: v.at, members: g.members, lost: s.lost, blocked: p.Blocked, error: p.Error}
	log := m.memory.logs[at]
	if s.from != nil {
		m.measure(v, at, s, t, log, &p)
		c.lag, c.seconds, c.at = p.Lag, p.Seconds, *s.from
		c.still, c.late = v.at.Sub(t.still), t.lateness(v.at, p.Seconds, m.cfg)
		c.draining, c.rewound, c.overtake = draining(p.In, p.Out), t.rewound, overtaken(s, t, log)
		if s.rewound {
			c.rewound = &rewind{why: s.fault}
		} else if !s.ours && log != nil && !log.anew.IsZero() && v.at.Sub(log.anew) < m.cfg.RewoundFor {
			c.rewound = &rewind{why: "the topic was made anew; the committed offset is of the one before"}
		}
	}
	p.State, p.Why, p.At = m.cfg.judge(c)
	p.Since, p.Lost = t.enter(v.at, p.State), s.lost
	return p
}

// measure fills in the figures of a partition whose place is known.
func (m *Monitor) measure(v *survey, at spot, s stand, t *track, log *logMemory, p *Partition) {
	lag := *s.end - *s.from
	when, exact, empty, ok := m.stamps.at(place{at, *s.from}, *s.end, v.at)
	if lag > 0 && ok && empty {
		lag = 0 // nothing but a transaction's markers
	}
	p.Lag = &lag
	switch {
	case lag == 0:
		p.Seconds, p.Exact = new(float64), true
	case ok:
		behind := max(0, v.at.Sub(when).Seconds())
		p.Seconds, p.Exact = &behind, exact
	}
	first := !t.ever
	t.move(v.at, *s.from, lag > 0, m.cfg)
	if first && lag > 0 {
		t.stood(s.saved, v.at, p.Seconds)
	}
	p.Out = t.out.value()
	if log != nil {
		p.In = log.end.value()
	}
	p.Drain = drainIn(p.Lag, p.In, p.Out)
}

// overtaken is the time until the start of the log reaches the group; nil if it
// does not, or nobody knows.
func overtaken(s stand, t *track, log *logMemory) *time.Duration {
	if log == nil || *s.from >= *s.end {
		return nil
	}
	start, out := log.start.value(), t.out.value()
	if start == nil || out == nil || *start <= *out {
		return nil
	}
	d := time.Duration(float64(*s.from-*s.start) / (*start - *out) * float64(time.Second))
	return &d
}

// why is what keeps a partition's figures from being known.
func (v *survey) why(g *told, at spot, s stand) string {
	switch {
	case s.from != nil:
		return ""
	case v.broker != nil:
		return v.broker.Error()
	case v.topics[at.topic] == nil:
		return "the topic does not exist"
	case v.faults[at] != nil:
		return v.faults[at].Error()
	case g.err != nil:
		return g.err.Error()
	}
	return s.fault
}

// add counts a partition into its group. One that is unknown makes sums
// unknown: part of a sum would look like a small lag.
func (g *Group) add(p Partition) {
	g.State = graver(g.State, p.State)
	g.Lag, g.In, g.Out = sum(g.Lag, p.Lag), sum(g.In, p.In), sum(g.Out, p.Out)
	switch {
	case p.Seconds == nil:
		g.Partial = true
	case g.Seconds == nil || *p.Seconds > *g.Seconds:
		g.Seconds, g.Exact = p.Seconds, p.Exact
	}
}

func sum[T int64 | float64](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	n := *a + *b
	return &n
}

func (m *Monitor) countParked(v *survey, g *told, out *Group) {
	if m.deps.DB == nil || v.database != nil {
		return
	}
	out.ParkedKeys, out.ParkedEvents = new(int64), new(int64)
	for _, b := range g.parked {
		*out.ParkedKeys += b.Keys
		*out.ParkedEvents += b.Events
	}
}

// deadLetters is how many a group has written; nil where it has no topic of
// them, or that is not known.
func (v *survey) deadLetters(group string) *int64 {
	var n *int64
	for at, end := range v.ends {
		if g, dead := deadLetterGroup(at.topic); dead && g == group {
			if n == nil {
				n = new(int64)
			}
			*n += end
		}
	}
	return n
}

// saturated is how much must wait, in seconds of what a group passes, before
// what it passes is taken for all it can.
const saturated = 2

// capable is what one member passes when there is more than enough to do: with
// little behind it passes what there is, which tells nothing.
func (g *groupMemory) capable(now *Group) *float64 {
	if now.Lag == nil || now.Out == nil || now.Members == nil || *now.Members == 0 || now.State == Stalled {
		return g.capacity
	}
	if *now.Out > 0 && float64(*now.Lag) > saturated**now.Out {
		each := *now.Out / float64(*now.Members)
		g.capacity = &each
	}
	return g.capacity
}
