package couriers

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Track takes positions of a courier and says how many: those whose time is
// plausible. They are published, late and repeated ones too; the newest moves
// the place by which couriers are chosen, and nothing moves it back.
//
// It refuses with *[Invalid], *[TooFast], [ErrAway] or [ErrNotFound]. It never
// waits for the broker.
func (t *Telemetry) Track(ctx context.Context, courier uuid.UUID, fixes []Fix) (accepted int, err error) {
	now := t.cfg.Now().UTC().Truncate(time.Microsecond)
	good, err := timely(fixes, now)
	if err != nil {
		return 0, err
	}
	schema := int(t.schema.Load())
	if schema == 0 {
		t.count(refused, len(good))
		return 0, ErrAway
	}
	if wait := t.pace.take(courier, len(fixes), now); wait > 0 {
		t.count(throttled, len(fixes))
		return 0, &TooFast{RetryAfter: wait}
	}
	t.count(stale, len(fixes)-len(good))
	if !t.enter(len(good)) {
		t.count(refused, len(good))
		return 0, ErrAway
	}
	out, err := t.place(ctx, courier, newest(good))
	if err != nil {
		t.flying.Add(-int64(len(good)))
		return 0, err
	}
	t.publish(ctx, schema, courier, good, out, now)
	return len(good), nil
}

// enter takes room for n positions. Asked of the client's own bound, it would
// be known too late to say so.
func (t *Telemetry) enter(n int) bool {
	if t.flying.Add(int64(n)) <= int64(t.cfg.MaxBuffered) {
		return true
	}
	t.flying.Add(-int64(n))
	return false
}
