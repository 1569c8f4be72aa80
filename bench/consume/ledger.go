package consume

import "sync"

// ledger holds what was handled, by key: each event is the next of its key, or
// something is wrong.
type ledger struct {
	mu                              sync.Mutex
	last                            map[string]int64
	distinct, reordered, duplicates int64
}

func newLedger() *ledger { return &ledger{last: map[string]int64{}} }

func (l *ledger) saw(key string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch last := l.last[key]; {
	case n == last+1:
		l.last[key] = n
		l.distinct++
	case n > last+1: // those between are lost, or will come out of their turn
		l.last[key] = n
		l.distinct++
		l.reordered++
	default:
		l.duplicates++
	}
}
