package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Between attempts of a delivery: a random time up to backoffFirst, and each time
// up to backoffFactor times as much, at most backoffMost ("full jitter": those
// that failed together do not come back together). About twenty attempts are made
// in three days, seven of them in the first half hour.
const (
	backoffFirst  = 10 * time.Second
	backoffFactor = 3
	backoffMost   = 12 * time.Hour
)

// backoff is how long to wait after so many attempts, from 1 on; draw gives a
// number in [0, n).
func backoff(attempts int, draw func(n int64) int64) time.Duration {
	top := backoffFirst
	for range min(attempts-1, 20) {
		top = min(top*backoffFactor, backoffMost)
	}
	// A moment at least: 0 would be the same attempt again.
	return max(time.Duration(draw(int64(top))), time.Second)
}

func random(n int64) int64 { return rand.Int64N(n) } //nolint:gosec // jitter

// Bounds of what an answer's Retry-After can ask for.
const (
	retryAfterMost = 24 * time.Hour   // of one delivery
	restMost       = 10 * time.Minute // of the whole endpoint
)

// retryAfter reads the header: seconds, or a date. It is 0 where there is none,
// or none that makes sense, and no more than the bound.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(retryAfterMost/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), retryAfterMost)
}
