package embedded

import (
	"log/slog"
	"sync"
	"time"
)

const logEvery = 10 * time.Second

// throttle logs a refusal now and then and counts the rest: whoever sends
// nonsense must not be able to fill the disk with our complaints.
type throttle struct {
	log *slog.Logger

	mu      sync.Mutex
	next    time.Time
	skipped int
}

func (t *throttle) warn(msg string, args ...any) {
	t.mu.Lock()
	now := time.Now()
	if now.Before(t.next) {
		t.skipped++
		t.mu.Unlock()
		return
	}
	skipped := t.skipped
	t.next, t.skipped = now.Add(logEvery), 0
	t.mu.Unlock()
	t.log.Warn(msg, append(args, "not_logged_since", skipped)...)
}
