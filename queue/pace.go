package queue

import "time"

// share is how much longer than a piece of upkeep took it is left alone
// afterwards: upkeep that becomes expensive, as it does while an old
// transaction keeps vacuum from its work, takes at most a tenth of the time.
const share = 9

// pace is when a piece of work that repeats was done last and what it took.
type pace struct {
	last time.Time
	took time.Duration
}

// may tells whether it is time again: every has passed, and the share of time.
func (p *pace) may(every time.Duration) bool {
	return time.Since(p.last) >= max(every, share*p.took)
}

// spent notes a round that began at a time and ends now.
func (p *pace) spent(began time.Time) { p.last, p.took = time.Now(), time.Since(began) }
