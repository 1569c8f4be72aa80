package lag

import (
	"slices"
	"time"
)

// place is an offset of a partition. Groups that stand at the same one share
// what is read there.
type place struct {
	spot
	offset int64
}

// stamp is what was read at a place: the time of the first record at or after
// it, or that there was none below end.
type stamp struct {
	time  time.Time
	empty bool
	end   int64
}

// stamps is what is known of the times of records.
type stamps struct {
	exact map[place]stamp
	past  map[spot]*past
}

func newStamps() *stamps {
	return &stamps{exact: map[place]stamp{}, past: map[spot]*past{}}
}

// maxPoints bounds what is kept of a partition's past.
const maxPoints = 32

// past is when some offsets of a partition were written, by offset. It is for
// estimates between them.
type past struct {
	id     [16]byte
	points []point
	end    int64
	asked  time.Time // when a record of it was last read
}

type point struct {
	offset int64
	time   time.Time
}

// see takes in how far the logs have grown: what was written since the last
// look was written by now.
func (s *stamps) see(v *survey) {
	if v.broker != nil {
		return
	}
	for at, end := range v.ends {
		p := s.past[at]
		if id := v.topics[at.topic].id; p == nil || p.id != id || end < p.end {
			s.past[at] = &past{id: id, end: end}
			continue
		}
		if end > p.end {
			p.add(point{end - 1, v.at})
			p.end = end
		}
	}
	for at := range s.past {
		if v.topics[at.topic] == nil {
			delete(s.past, at)
		}
	}
}

// add keeps a point. When there are too many, every second one goes: the past
// becomes coarser the longer it is.
func (p *past) add(n point) {
	i, there := slices.BinarySearchFunc(p.points, n.offset, func(a point, offset int64) int {
		return int(min(max(a.offset-offset, -1), 1))
	})
	if there {
		p.points[i] = n
		return
	}
	p.points = slices.Insert(p.points, i, n)
	if len(p.points) <= maxPoints {
		return
	}
	kept := p.points[:0]
	for i, q := range p.points {
		if i%2 == 0 || i == len(p.points)-1 {
			kept = append(kept, q)
		}
	}
	p.points = kept
}

// estimate is when offset was written, judged by its neighbours; not ok where
// nothing older is known, since then it may be of any age.
func (p *past) estimate(offset int64, now time.Time) (t time.Time, ok bool) {
	if p == nil {
		return t, false
	}
	i, there := slices.BinarySearchFunc(p.points, offset, func(a point, offset int64) int {
		return int(min(max(a.offset-offset, -1), 1))
	})
	switch {
	case there:
		return p.points[i].time, true
	case i == 0:
		return t, false
	}
	before, after := p.points[i-1], point{max(p.end, offset+1), now}
	if i < len(p.points) {
		after = p.points[i]
	}
	share := float64(offset-before.offset) / float64(after.offset-before.offset)
	return before.time.Add(time.Duration(share * float64(after.time.Sub(before.time)))), true
}

// maxSkew is how far ahead of this clock a record's time may be and still be
// believed. The clocks of two machines differ; a time of tomorrow is made up.
const maxSkew = time.Minute

// at is the time of the record that a group reads next at a place below end.
// Where nothing is to be read, although the end is further on, as after a
// transaction's marker, empty is true.
func (s *stamps) at(where place, end int64, now time.Time) (t time.Time, exact, empty, ok bool) {
	if got, there := s.exact[where]; there {
		switch {
		case got.empty && got.end >= end:
			return t, true, true, true
		case !got.empty:
			return got.time, true, false, true
		}
	}
	t, ok = s.past[where.spot].estimate(where.offset, now)
	return t, false, false, ok
}

func (s *stamps) keep(where place, got stamp, now time.Time) {
	if !got.empty && (got.time.After(now.Add(maxSkew)) || got.time.Unix() <= 0) {
		return // no time of day: the estimate is better, and unknown is honest
	}
	s.exact[where] = got
	if p := s.past[where.spot]; p != nil && !got.empty {
		p.add(point{where.offset, got.time})
	}
}
