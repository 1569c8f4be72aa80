package lag

import (
	"math"
	"time"
)

// rate is how fast a number grows, in a second, averaged over about window
// with the newer counting more.
type rate struct {
	seen  bool
	known bool
	last  int64
	at    time.Time
	v     float64
}

// see takes the number as it is now. One that went back starts the average
// anew: the way there is no rate.
func (r *rate) see(at time.Time, n int64, window time.Duration) {
	if !r.seen || n < r.last {
		*r = rate{seen: true, last: n, at: at}
		return
	}
	dt := at.Sub(r.at).Seconds()
	if dt <= 0 {
		return
	}
	now := float64(n-r.last) / dt
	if r.known {
		now = r.v + (1-math.Exp(-dt/window.Seconds()))*(now-r.v)
	}
	r.known, r.v, r.last, r.at = true, now, n, at
}

func (r *rate) value() *float64 {
	if !r.known {
		return nil
	}
	v := r.v
	if v < 1e-3 { // the average's long tail
		v = 0
	}
	return &v
}
