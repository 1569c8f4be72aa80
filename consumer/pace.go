package consumer

import (
	"sync/atomic"
	"time"
)

// pace is how long one event of a type takes, as a moving average: its handler,
// or finding that there is nothing to do.
type pace struct{ ns atomic.Int64 }

// paceWeight is how many events the average remembers.
const paceWeight = 8

// add notes that n events took d. Two workers that add at once may lose one of
// theirs, which an average can bear.
func (p *pace) add(d time.Duration, n int) {
	one := max(int64(d)/int64(n), 1)
	if was := p.ns.Load(); was > 0 {
		one = was + (one-was)/paceWeight
	}
	p.ns.Store(max(one, 1))
}

// expect is how long the next event should take; 0 if that is not known.
func (p *pace) expect() time.Duration { return time.Duration(p.ns.Load()) }
