package api

import (
	"sync"
	"time"
)

// maxPaced is how many callers' buckets are remembered. One that is forgotten
// begins with a full one.
const maxPaced = 10_000

// pace is a bucket of requests for each caller: what is taken comes back at the
// rate.
type pace struct {
	rate, burst float64

	mu      sync.Mutex
	buckets map[string]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

func newPace(rate, burst float64) *pace {
	return &pace{rate: rate, burst: burst, buckets: map[string]bucket{}}
}

// take takes a request of caller's, or says how long it is until one may be
// taken and takes none.
func (p *pace) take(caller string, now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, known := p.buckets[caller]
	if !known {
		p.makeRoom(now)
		b = bucket{p.burst, now}
	}
	b = bucket{p.refilled(b, now), now}
	if b.left < 1 {
		p.buckets[caller] = b
		return time.Duration((1 - b.left) / p.rate * float64(time.Second))
	}
	b.left--
	p.buckets[caller] = b
	return 0
}

func (p *pace) refilled(b bucket, now time.Time) float64 {
	return min(p.burst, b.left+max(0, now.Sub(b.at).Seconds())*p.rate)
}

// makeRoom forgets those whose buckets are full again, or, where there are too
// many that are not, any.
func (p *pace) makeRoom(now time.Time) {
	if len(p.buckets) < maxPaced {
		return
	}
	for caller, b := range p.buckets {
		if p.refilled(b, now) >= p.burst {
			delete(p.buckets, caller)
		}
	}
	for caller := range p.buckets {
		if len(p.buckets) < maxPaced {
			return
		}
		delete(p.buckets, caller)
	}
}
