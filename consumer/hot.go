package consumer

import "time"

// A lane may hold a quarter of what fits in memory, its share. One that holds
// more, and will not be rid of it within hotFor, has its partition read no
// further until half of its share is left: its key would fill the room of all
// others. A quick lane may hold three shares, and its partition is read again
// when two are left: that costs a wait (fetchWait), in which it has work to do.
const (
	hotShare = 4
	hotFor   = time.Second
)

// share is how many records one lane may hold.
func (c Config) share() int { return max(c.MaxInFlight/hotShare, 1) }

// over tells whether a lane holds more than n halves of its share.
func (s *session) over(l *lane, n int) bool {
	return 2*len(l.queue) > n*s.cfg.share() || 2*l.bytes > n*s.cfg.MaxInFlightBytes/hotShare
}

// within tells whether a lane will be rid of what it holds within d, as far as
// that is known.
func (l *lane) within(d time.Duration) bool {
	one := l.queue[0].route.pace.expect()
	return one > 0 && time.Duration(len(l.queue))*one <= d
}

// hot tells whether a lane has more than its share, and for long.
func (s *session) hot(l *lane) bool {
	return !l.isParked() && s.over(l, 2) && (s.over(l, 6) || !l.within(hotFor))
}

// cool notes that a hot lane has drained.
func (s *session) cool(l *lane) {
	if l.p.hot != l {
		return
	}
	if !s.over(l, 1) || !s.over(l, 4) && l.within(hotFor/2) {
		l.p.hot = nil
		s.cooled = append(s.cooled, l.p.place)
	}
}

func (s *session) unthrottle() {
	s.mu.Lock()
	cooled := s.cooled
	s.cooled = nil
	s.mu.Unlock()
	s.throttle(cooled...)
}

// throttle has the client read partitions or not, as is due. What is due is
// looked up under a lock that is held until the client knows: of two that come
// at once the second does not undo what the first did with less knowledge.
func (s *session) throttle(places ...place) {
	if len(places) == 0 {
		return
	}
	s.throttling.Lock()
	defer s.throttling.Unlock()
	pause, resume := map[string][]int32{}, map[string][]int32{}
	s.mu.Lock()
	for _, at := range places {
		p := s.parts[at]
		if p != nil && (p.hot != nil || p.fault != faultNone || !p.ceded.IsZero()) {
			pause[at.topic] = append(pause[at.topic], at.id)
		} else {
			resume[at.topic] = append(resume[at.topic], at.id)
		}
	}
	s.mu.Unlock()
	if len(pause) > 0 { // without any it would tell which ones there are
		s.cl.PauseFetchPartitions(pause)
	}
	if len(resume) > 0 {
		s.cl.ResumeFetchPartitions(resume)
	}
}
