package webhook

import "time"

// pace is how many calls of an endpoint are under way at a time: more, as long as
// it answers, and half as many when it does not (AIMD).
type pace struct {
	most    float64
	limit   float64 // at least 1
	steep   bool    // it has never failed: one more for each answer, not each round
	cutAt   time.Time
	cutOnce time.Duration // failures within it are one
}

func newPace(most int) pace {
	return pace{most: float64(most), limit: 1, steep: true, cutOnce: time.Second}
}

// answered lets more through, if all that were let through were under way.
func (p *pace) answered(inFlight int) {
	if float64(inFlight)+1 < p.limit {
		return
	}
	if p.steep {
		p.limit++
	} else {
		p.limit += 1 / p.limit
	}
	p.limit = min(p.limit, p.most)
}

// overloaded lets half as many through. Those that were under way together fail
// together, and are counted once.
func (p *pace) overloaded(now time.Time) {
	p.steep = false
	if now.Sub(p.cutAt) < p.cutOnce {
		return
	}
	p.cutAt = now
	p.limit = max(p.limit/2, 1)
}

// The breaker: after so many failures in a row an endpoint is left alone for a
// while, then called once. What waits for it does not age by that.
const (
	breakAfter = 5
	restFirst  = 5 * time.Second
	restLong   = 5 * time.Minute
)

// health is what is known of an endpoint's answers. Zero is well.
type health struct {
	failures     int       // in a row
	failingSince time.Time // the first of them; zero: none
	openUntil    time.Time // no call before
}

func (h *health) succeeded() { *h = health{} }

// failed notes a failure, and rests the endpoint if it was one too many, or if it
// asked for it.
func (h *health) failed(now time.Time, asked time.Duration, draw func(int64) int64) {
	h.failures++
	if h.failingSince.IsZero() {
		h.failingSince = now
	}
	rest := min(asked, restMost)
	if n := h.failures - breakAfter; n >= 0 {
		top := min(restFirst<<min(n, 10), restLong)
		rest = max(rest, top/2+time.Duration(draw(int64(top/2))))
	}
	if until := now.Add(rest); until.After(h.openUntil) {
		h.openUntil = until
	}
}

// broken is true from so many failures on until a call has succeeded: meanwhile
// one is made at a time.
func (h *health) broken() bool { return h.failures >= breakAfter }
