package consumer

import (
	"math/rand/v2"
	"time"
)

// backoff is base, doubled n times, at most limit, less up to half by chance:
// what failed together shall not come back together.
func backoff(base, limit time.Duration, n int) time.Duration {
	d := limit
	if n < 32 && base<<n > 0 {
		d = min(base<<n, limit)
	}
	return jitter(d)
}

// jitter is d less up to half by chance.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(max(d, 0))/2+1)) //nolint:gosec // not a secret
}

// How long to wait for infrastructure between tries.
const (
	outagePause   = 50 * time.Millisecond
	outageMax     = 2 * time.Second
	conflictPause = 5 * time.Millisecond // for other transactions, which are short
)

// pause waits for d. It is false if stop closed first.
func pause(stop <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-stop:
		return false
	case <-t.C:
		return true
	}
}
