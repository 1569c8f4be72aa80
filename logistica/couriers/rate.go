package couriers

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// TooFast refuses positions of a courier who sends more than they may.
type TooFast struct{ RetryAfter time.Duration }

func (e *TooFast) Error() string {
	return fmt.Sprintf("too many positions; send the next in %s", e.RetryAfter.Round(time.Millisecond))
}

// burstReports is how many full reports a device that was out of reach may send
// at once.
const burstReports = 3

// pace is a bucket of positions for each courier: what is taken comes back at
// the rate. At most size couriers are remembered; one that is forgotten begins
// with a full bucket.
type pace struct {
	rate, burst float64
	size        int

	mu      sync.Mutex
	buckets map[uuid.UUID]bucket
}

type bucket struct {
	left float64
	at   time.Time
}

func newPace(rate float64, size int) *pace {
	return &pace{rate: rate, burst: burstReports * MaxFixes, size: size, buckets: map[uuid.UUID]bucket{}}
}

// take takes n positions of a courier, or says how long it is until they may be
// taken and takes none.
func (p *pace) take(courier uuid.UUID, n int, now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, known := p.buckets[courier]
	if !known {
		p.makeRoom(now)
		b = bucket{p.burst, now}
	}
	b = bucket{p.refilled(b, now), now}
	if missing := float64(n) - b.left; missing > 0 {
		p.buckets[courier] = b
		return time.Duration(missing / p.rate * float64(time.Second))
	}
	b.left -= float64(n)
	p.buckets[courier] = b
	return 0
}

func (p *pace) refilled(b bucket, now time.Time) float64 {
	return min(p.burst, b.left+max(0, now.Sub(b.at).Seconds())*p.rate)
}

// makeRoom drops one bucket of too many. It looks at a few, for one that is full
// and says nothing.
func (p *pace) makeRoom(now time.Time) {
	const look = 20
	if len(p.buckets) < p.size {
		return
	}
	var victim uuid.UUID
	looked := 0
	for id, b := range p.buckets {
		victim = id
		if looked++; looked == look || p.refilled(b, now) == p.burst {
			break
		}
	}
	delete(p.buckets, victim)
}
