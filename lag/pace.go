package lag

import "time"

// pace is what a group did between two looks at it.
type pace struct {
	at     time.Time
	places map[spot]reached
}

// reached is where a partition ends, and what its group reads next.
type reached struct{ next, end int64 }

// load is the work since the look before. Rates are of just that time: those of
// a snapshot are averages over half a minute, and would tell of workers that
// there were before. All is unknown after the first look, where s is the one
// before, and where the place on some partition is unknown or went back.
//
// A partition that is behind and passed nothing counts for nothing: whether
// something holds it up that would hold up more workers as well, as a failing
// event does, nobody can say. It counts as soon as it moves. A key that waits
// behind a failing event, while the others of its partition go on, is no lag.
func (p *pace) load(s *Snapshot, group string) Load {
	l := Load{At: time.Now()}
	if s == nil {
		return l
	}
	l.At = s.At
	g := s.Group(group)
	before, since := p.places, s.At.Sub(p.at).Seconds()
	if g == nil || since <= 0 {
		return l
	}
	p.at, p.places = s.At, map[spot]reached{}
	var behind, came, passed int64
	known, held := before != nil, 0
	for _, at := range g.Partitions {
		if at.Lag == nil || at.End == nil {
			p.places = nil
			return l
		}
		now := reached{next: *at.End - *at.Lag, end: *at.End}
		p.places[spot{at.Topic, at.Partition}] = now
		was, ok := before[spot{at.Topic, at.Partition}]
		switch {
		case !ok || now.next < was.next || now.end < was.end:
			known = false
		case *at.Lag > 0 && now.next == was.next:
			held++
		default:
			behind += *at.Lag
			came += now.end - was.end
			passed += now.next - was.next
		}
	}
	if known {
		in, out := float64(came)/since, float64(passed)/since
		l.Behind, l.In, l.Out = &behind, &in, &out
		l.Stalled = held > 0 && passed == 0
	}
	return l
}
