package consumer

import "time"

// shortTime is how long the handlers of one transaction should take together.
// A handler that takes longer runs alone: whoever shares its transaction would
// wait for it while other workers are free.
const shortTime = 20 * time.Millisecond

// bundle is what a worker takes at once: lanes, of one partition or several, and
// how many of the first events of each. One transaction holds them all.
type bundle struct {
	parts []*partition // each once
	lanes []*lane
	take  []int // events of each
	alone bool  // one lane, with more to decide than how to handle an event

	events int
	time   time.Duration // that they should take
	first  *route        // of the first event
}

// gather waits for work and takes a bundle of it. It is nil once there will be
// no more. Nothing is waited for to fill a bundle: where there are as many
// workers as ready lanes each gets one.
func (s *session) gather() *bundle {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.work.next()
	if p == nil {
		return nil
	}
	b := &bundle{parts: []*partition{p}}
	p.running++
	share := (s.work.lanes + s.cfg.Workers - 1) / s.cfg.Workers
	s.work.pick(p, 1, func() bool { return false }, func(l *lane) bool { s.begin(b, l); return true })
	if b.alone {
		s.work.back(p)
		return b
	}
	most := s.most(b.first)
	enough := func() bool { return b.events >= most || b.first.form != setForm && len(b.lanes) >= share }
	s.fill(b, p, most, enough)
	s.work.back(p)
	if s.cfg.Gaps == IgnoreGaps { // numbers are kept by partition
		s.work.others(p, enough, func(q *partition) { s.widen(b, q, most, enough) })
	}
	return b
}

// fill takes lanes of p that need nothing of their own.
func (s *session) fill(b *bundle, p *partition, most int, enough func() bool) {
	s.work.pick(p, lookAt*most, enough, func(l *lane) bool { return !s.special(l) && s.add(b, l) })
}

// widen takes lanes of another partition. A topic has many, and what comes in
// within milliseconds lies scattered over them: a transaction for each would cost
// as much as one for each event.
func (s *session) widen(b *bundle, p *partition, most int, enough func() bool) {
	had := len(b.lanes)
	s.fill(b, p, most, enough)
	if len(b.lanes) > had {
		b.parts = append(b.parts, p)
		p.running++
	}
}

// lookAt bounds the lanes that are looked at to fill a bundle, as a multiple of
// what fits.
const lookAt = 4

// begin puts the first lane into a bundle.
func (s *session) begin(b *bundle, l *lane) {
	if s.special(l) {
		b.lanes, b.take, b.alone = []*lane{l}, []int{1}, true
		return
	}
	s.add(b, l)
}

// special tells a lane whose next step is not simply to handle its first event,
// or whose event must stand alone: it has failed before, or the form of its
// handler asks for it.
func (s *session) special(l *lane) bool {
	if l.key == wholePartition && len(l.p.parked) > 0 || l.due || l.isParked() || l.attempts > 0 || l.waits > 0 || len(l.queue) == 0 {
		return true
	}
	f := l.queue[0].route.form
	return f != txForm && f != setForm
}

// add takes as many of the lane's first events as fit, which may be none.
func (s *session) add(b *bundle, l *lane) bool {
	n := 0
	for n < len(l.queue) && s.fits(b, l.queue[n]) {
		b.events++
		b.time += l.queue[n].route.pace.expect()
		n++
		if b.first == nil {
			b.first = l.queue[0].route
		}
	}
	if n > 0 {
		b.lanes, b.take = append(b.lanes, l), append(b.take, n)
	}
	return n > 0
}

// fits tells whether m may be in the bundle. One handler gets all of a set: an
// event of another type may not stand between two of the same key, so a lane is
// taken up to it only.
func (s *session) fits(b *bundle, m *message) bool {
	switch {
	case b.events == 0:
		return true
	case b.events >= s.most(b.first):
		return false
	case m.route.pass && b.first.form == setForm:
		return true
	case m.route.form != b.first.form:
		return false
	case b.first.form == setForm:
		return m.route == b.first
	}
	// What is not known yet may be slow.
	expect := m.route.pace.expect()
	return expect > 0 && b.time > 0 && b.time+expect <= shortTime
}

// How many events one transaction holds, unless the configuration says.
const (
	defaultBatch = 64
	defaultSet   = 1000
)

// most is how many events of route r one transaction holds.
func (s *session) most(r *route) int {
	switch {
	case s.cfg.MaxBatch > 0:
		return s.cfg.MaxBatch
	case r.form == setForm:
		return defaultSet
	}
	return defaultBatch
}
