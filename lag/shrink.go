package lag

import (
	"fmt"
	"math"
)

// share of what workers can pass that is used when it shrinks, so that it does
// not grow again at the next gust.
const share = 0.8

// learn notes what a worker passes while all are busy: with little to do they
// pass what there is. It forgets after HoldMax, for a handler may have become
// quicker.
func (s *Scaler) learn(l Load) {
	if s.waits(l) && *l.Out > 0 {
		s.each, s.eachAt = *l.Out/float64(s.n), l.At
	} else if l.At.Sub(s.eachAt) > s.cfg.HoldMax {
		s.each = 0
	}
}

// shrink goes towards what is needed, by a quarter at most.
func (s *Scaler) shrink(l Load) int {
	least := s.cfg.Min
	if s.each > 0 {
		least = max(least, int(math.Ceil(min(*l.In/s.each/share, 1e6))))
	}
	n := max(least, s.n-max(1, s.n/4))
	if n >= s.n {
		return s.n
	}
	s.why = fmt.Sprintf("little to do: %.0f events/s come in, %d behind", *l.In, *l.Behind)
	return n
}
