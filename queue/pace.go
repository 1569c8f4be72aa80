package queue

import "time"

// share is how much longer than a piece of upkeep took it is left alone
// afterwards: upkeep that becomes expensive, as it does while an old
// transaction keeps vacuum from its work, takes about a tenth of the time.
const share = 9

// longest bounds how long it is left alone, whatever it took.
const longest = 5 * time.Second

// pace is when a piece of work that repeats was done last and what it takes.
type pace struct {
	last       time.Time
	took, once time.Duration // the shorter of the last two rounds; the last one
}

// may tells whether it is time again: every has passed, and the share of time.
func (p *pace) may(every time.Duration) bool {
	return time.Since(p.last) >= max(every, min(share*p.took, longest))
}

// spent notes a round that began at a time and ends now. One slow round is a
// machine that stalled; two are work that has become expensive.
func (p *pace) spent(began time.Time) {
	p.last = time.Now()
	p.took, p.once = min(p.once, time.Since(began)), time.Since(began)
}
