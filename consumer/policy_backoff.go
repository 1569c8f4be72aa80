package consumer

import (
	"math"
	"time"
)

// Backoff is how long to wait between tries: From, and Factor times that after
// each, at most To, less up to half by chance. Make it with [Between].
type Backoff struct {
	From, To time.Duration
	Factor   float64 // below 1: 2
}

// Between waits from, twice that after each try, at most to.
func Between(from, to time.Duration) Backoff { return Backoff{from, to, 2} }

// By is b with another factor than 2.
func (b Backoff) By(factor float64) Backoff { b.Factor = factor; return b }

// after is the wait after the nth try, counted from 1.
func (b Backoff) after(n int) time.Duration {
	factor := b.Factor
	if !(factor >= 1) { // also what is no number
		factor = 2
	}
	to := max(b.From, b.To)
	d := float64(b.From) * math.Pow(factor, float64(n-1))
	if !(d < float64(to)) {
		return jitter(to)
	}
	return jitter(time.Duration(d))
}
