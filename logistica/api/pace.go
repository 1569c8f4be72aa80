package api

import (
	"context"
	"sync"
	"time"
)

// maxPaced is how many callers' buckets are remembered. One that is forgotten
// begins with a full one.
const maxPaced = 10_000

// paceWithin is how long a request waits for its caller's pace; one that would
// wait longer is refused. A caller that sends somewhat more than its rate is so
// slowed down to it, and not let in by the gulp.
const paceWithin = 100 * time.Millisecond

// pace is a bucket of requests for each caller: what is taken comes back at the
// rate. It may go below empty, by those that wait. Merchants have the rate and
// the burst that the crowd leaves them.
type pace struct {
	rate, burst float64

	mu      sync.Mutex
	buckets map[string]bucket
	crowd   *crowd
}

type bucket struct {
	left float64
	at   time.Time
}

func newPace(rate, burst, assured float64, delays *Delays) *pace {
	return &pace{rate: rate, burst: burst, buckets: map[string]bucket{}, crowd: newCrowd(assured, rate, delays)}
}

// keep waits for the caller's pace. It takes nothing, and says how long it is
// until something may be taken, where that is too long.
func (p *pace) keep(ctx context.Context, caller string, merchant bool) (refused time.Duration) {
	wait, ok := p.take(caller, merchant, time.Now())
	switch {
	case !ok:
		return wait
	case wait == 0:
		return 0
	}
	turn := time.NewTimer(wait)
	defer turn.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done(): // whoever comes next sees that
	}
	return 0
}

// take takes a request of caller's, to be begun after a wait; or it takes none,
// and says how long it is until one may be taken.
func (p *pace) take(caller string, merchant bool, now time.Time) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rate, burst := p.rate, p.burst
	if merchant {
		rate, burst = p.crowd.limits(caller, burst, now)
	}
	b, known := p.buckets[caller]
	if !known {
		p.makeRoom(now)
		b = bucket{burst, now}
	}
	b = bucket{refilled(b, rate, burst, now), now}
	wait = time.Duration(max(0, 1-b.left) / rate * float64(time.Second))
	if wait > 0 && merchant {
		p.crowd.held = true
	}
	if ok = wait <= paceWithin; ok {
		b.left--
	}
	p.buckets[caller] = b
	return wait, ok
}

func refilled(b bucket, rate, burst float64, now time.Time) float64 {
	return min(burst, b.left+max(0, now.Sub(b.at).Seconds())*rate)
}

// makeRoom forgets those whose buckets are full again, or, where there are too
// many that are not, any: a tenth at once, so that it is not each new caller for
// whom all are looked through while the others wait.
func (p *pace) makeRoom(now time.Time) {
	if len(p.buckets) < maxPaced {
		return
	}
	for caller, b := range p.buckets {
		if refilled(b, p.rate, p.burst, now) >= p.burst {
			delete(p.buckets, caller)
		}
	}
	for caller := range p.buckets {
		if len(p.buckets) <= maxPaced*9/10 {
			return
		}
		delete(p.buckets, caller)
	}
}

// inCompany is what each merchant may send now while others do.
func (p *pace) inCompany() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crowd.pace
}
