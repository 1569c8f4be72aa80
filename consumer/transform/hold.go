package transform

import "time"

// hold is what is known of the record that a partition does not get past.
type hold struct {
	offset   int64
	attempts int   // that failed, and count
	outages  int   // that failed for want of infrastructure
	size     int   // of the dead letter that is tried, see consumer.Sizes
	refused  error // the broker's word on what was made of it
	first    time.Time
	until    time.Time // not tried before; zero: it is being tried
	stopped  bool      // not tried any more
}

// waits tells that nothing of the partition is to be done now.
func (h *hold) waits() bool { return h != nil && (h.stopped || !h.until.IsZero()) }

// holdOf is the hold of an item, a new one if the last was of another record.
func (s *session) holdOf(it *item) *hold {
	h := s.holds[it.place()]
	if h == nil || h.offset != it.rec.Offset {
		h = &hold{offset: it.rec.Offset, first: time.Now()}
		s.holds[it.place()] = h
	}
	return h
}

// holdBack has a partition wait, and the client read no more of it meanwhile:
// what it holds in memory is what it has.
func (s *session) holdBack(at place, h *hold, d time.Duration) {
	h.until = time.Now().Add(d)
	s.paused[at] = struct{}{}
	s.tx.Client().PauseFetchPartitions(map[string][]int32{at.topic: {at.id}})
	s.countHolds()
}

// release lets partitions go on whose time has come.
func (s *session) release(now time.Time) {
	resume := map[string][]int32{}
	for at := range s.paused {
		h := s.holds[at] // another one, or none, if the transaction before it was aborted
		if h != nil && (h.stopped || now.Before(h.until)) {
			continue
		}
		if h != nil {
			h.until = time.Time{}
		}
		delete(s.paused, at)
		resume[at.topic] = append(resume[at.topic], at.id)
	}
	if len(resume) > 0 {
		s.tx.Client().ResumeFetchPartitions(resume)
		s.countHolds()
	}
}

// wake is when the next partition goes on, zero for none.
func (s *session) wake() (next time.Time) {
	for _, h := range s.holds {
		if !h.stopped && !h.until.IsZero() && (next.IsZero() || h.until.Before(next)) {
			next = h.until
		}
	}
	return next
}

func (s *session) countHolds() {
	waiting, stopped := 0, 0
	for _, h := range s.holds {
		switch {
		case h.stopped:
			stopped++
		case !h.until.IsZero():
			waiting++
		}
	}
	s.meter.held.Set(float64(waiting))
	s.meter.stopped.Set(float64(stopped))
}
