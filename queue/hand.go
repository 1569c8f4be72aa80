package queue

import (
	"context"
	"sync"
	"time"
)

// ahead is how much work a worker takes beyond what it is at. A receive costs
// as much for one message as for many: without any, each message that is done
// would cost one.
const ahead = 20 * time.Millisecond

// aheadMost bounds it in messages, each of which may have MaxBody bytes; with as
// many, a receive weighs little on each.
const aheadMost = 64

// patience is how long a message waits for its turn. One that waits longer came
// behind others that take longer than was thought, for ever perhaps, and is given
// back to workers that have time.
const patience = time.Second

// hand is the messages that a worker has, at work or waiting for their turn,
// and how many it may have.
type hand struct {
	workers int
	freed   chan struct{}

	mu   sync.Mutex
	has  int
	pace time.Duration // of one message, as a moving average; 0: not known
}

func newHand(workers int) *hand { return &hand{workers: workers, freed: make(chan struct{}, 1)} }

// room waits until it is worth receiving, and says how many; 0 if ctx ended.
func (h *hand) room(ctx context.Context) int {
	for ctx.Err() == nil {
		if n := h.free(); n > 0 {
			return n
		}
		select {
		case <-ctx.Done():
		case <-h.freed:
		}
	}
	return 0
}

// free is how many more there may be, or 0 while those are few.
func (h *hand) free() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	more := 0
	if h.pace > 0 {
		more = min(h.workers*int(ahead/h.pace), MaxBatch-h.workers, aheadMost)
	}
	n := h.workers + more - h.has
	if n < more/2 {
		return 0
	}
	return max(n, 0)
}

func (h *hand) take(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.has += n
}

// forget is of a message that waited in vain: nothing is taken ahead until one is
// done, or what was given back would be taken again.
func (h *hand) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pace = 0
}

// paceWeight is how many messages the average remembers.
const paceWeight = 16

// put is of a message that is done with. It took d; 0: it had no turn.
func (h *hand) put(d time.Duration) {
	h.mu.Lock()
	h.has--
	switch {
	case d <= 0:
	case h.pace == 0:
		h.pace = d
	default:
		h.pace = max(h.pace+(d-h.pace)/paceWeight, time.Microsecond)
	}
	h.mu.Unlock()
	select {
	case h.freed <- struct{}{}:
	default:
	}
}
