package lag

import (
	"fmt"
	"time"
)

// Windows that rates are averaged over. Retention deletes in steps, whole
// segments at a time: its rate needs a longer one.
const (
	rateWindow  = 30 * time.Second
	startWindow = 5 * time.Minute
)

// moments is how much of a group's past is kept, as many rounds.
const moments = 120

// memory is what a monitor knows from earlier rounds. What was not seen in a
// round that knew everything is forgotten.
type memory struct {
	logs   map[spot]*logMemory
	groups map[string]*groupMemory
}

// logMemory is of a partition, whoever reads it.
type logMemory struct {
	id         [16]byte
	anew       time.Time // when it was seen to be another under the same name
	end, start rate
}

type groupMemory struct {
	pairs    map[spot]*track
	history  []Moment
	capacity *float64
	seen     *told // the last that was told of it
}

// track is a group's way over a partition.
type track struct {
	at      int64
	ever    bool      // at is set
	still   time.Time // since when it stands while behind
	late    time.Time // since when it is late; zero: it is not
	out     rate
	rewound *rewind
	state   State
	since   time.Time
}

// rewind is a place that went back.
type rewind struct {
	when time.Time
	from int64
	why  string
}

func newMemory() *memory {
	return &memory{logs: map[spot]*logMemory{}, groups: map[string]*groupMemory{}}
}

// see takes in what a survey learned of the logs. While the broker is away
// nothing is known, and nothing forgotten.
func (m *memory) see(v *survey) {
	if v.broker != nil {
		return
	}
	for at, end := range v.ends {
		l := m.logs[at]
		if id := v.topics[at.topic].id; l == nil || l.id != id {
			fresh := &logMemory{id: id}
			if l != nil {
				fresh.anew = v.at
			}
			l = fresh
			m.logs[at] = l
		}
		l.end.see(v.at, end, rateWindow)
		if start, ok := v.starts[at]; ok {
			l.start.see(v.at, start, startWindow)
		}
	}
	for at := range m.logs {
		if v.topics[at.topic] == nil {
			delete(m.logs, at)
		}
	}
	for name := range m.groups {
		if v.groups[name] == nil && v.partial == nil && v.database == nil {
			delete(m.groups, name)
		}
	}
}

func (m *memory) group(name string) *groupMemory {
	g := m.groups[name]
	if g == nil {
		g = &groupMemory{pairs: map[spot]*track{}}
		m.groups[name] = g
	}
	return g
}

func (g *groupMemory) track(at spot) *track {
	t := g.pairs[at]
	if t == nil {
		t = &track{}
		g.pairs[at] = t
	}
	return t
}

// move takes in where the group is now, and whether it is behind there.
func (t *track) move(now time.Time, at int64, behind bool, c Config) {
	switch {
	case !t.ever:
		t.still = now
	case at < t.at:
		t.rewound = &rewind{when: now, from: t.at, why: fmt.Sprintf("its place went back from %d to %d", t.at, at)}
		t.still = now
	case at > t.at || !behind:
		t.still = now
	}
	if t.rewound != nil && (at >= t.rewound.from || now.Sub(t.rewound.when) > c.RewoundFor) {
		t.rewound = nil
	}
	t.ever, t.at = true, at
	t.out.see(now, at, rateWindow)
}

// stood takes the database's word for how long a place stands still, where this
// is the first look at it. It does not stand for longer than there is something
// to read.
func (t *track) stood(at, now time.Time, seconds *float64) {
	if seconds == nil || at.IsZero() {
		return
	}
	there := now.Add(-time.Duration(*seconds * float64(time.Second)))
	if there.After(at) {
		at = there
	}
	if at.Before(t.still) {
		t.still = at
	}
}

// lateness takes in the time behind and says for how long it has been too
// much. It ends below four fifths of the limit, so that what hovers there does
// not flicker; what is unknown changes nothing.
func (t *track) lateness(now time.Time, seconds *float64, c Config) time.Duration {
	if seconds != nil {
		behind := time.Duration(*seconds * float64(time.Second))
		switch {
		case behind > c.Late && t.late.IsZero():
			t.late = now
		case behind < c.Late*4/5:
			t.late = time.Time{}
		}
	}
	if t.late.IsZero() {
		return 0
	}
	return max(now.Sub(t.late), 1) // from its first moment on
}

func (t *track) enter(now time.Time, s State) time.Time {
	if t.state != s {
		t.state, t.since = s, now
	}
	return t.since
}

// remember keeps a moment of a group for those who draw it.
func (g *groupMemory) remember(m Moment) []Moment {
	if len(g.history) == moments {
		g.history = append(g.history[:0:0], g.history[1:]...)
	}
	g.history = append(g.history, m)
	return append([]Moment(nil), g.history...)
}
