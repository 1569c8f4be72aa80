package sim

import (
	"context"
	"time"
)

// clock is simulated time: it runs speed times as fast as the real one.
type clock struct {
	began time.Time // real
	start time.Time // simulated
	speed float64
}

func newClock(start time.Time, speed float64) *clock {
	now := time.Now()
	if start.IsZero() {
		start = now
	}
	return &clock{began: now, start: start.In(saoPaulo), speed: speed}
}

func (c *clock) now() time.Time {
	return c.start.Add(time.Duration(float64(time.Since(c.began)) * c.speed))
}

// real is how long simulated time takes.
func (c *clock) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.speed)
}

// sleep waits for so much simulated time, or until ctx ends.
func (c *clock) sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, c.real(d)) }

// sleep waits for real time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// saoPaulo has no summer time since 2019. Fixed, it needs no table of zones on
// the machine.
var saoPaulo = time.FixedZone("-03", -3*60*60)
