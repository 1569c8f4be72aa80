package transform

import (
	"context"
	"math/rand/v2"
	"time"
)

// How long to wait for infrastructure between tries.
const (
	outagePause = 100 * time.Millisecond
	outageMax   = 5 * time.Second
)

// backoff is base, doubled n times, at most limit, less up to half by chance:
// what failed together shall not come back together.
func backoff(base, limit time.Duration, n int) time.Duration {
	d := limit
	if n < 20 {
		d = min(base<<n, limit)
	}
	return d - time.Duration(rand.Int64N(int64(d)/2+1)) //nolint:gosec // not a secret
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// linger is ctx with some more time once it has ended, and never more than most.
func linger(ctx context.Context, more, most time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	stop := context.AfterFunc(ctx, func() {
		pause(late, more)
		cancel()
	})
	return late, func() { stop(); cancel() }
}
