package push

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	checkAtOnce  = 500              // credentials that are asked about together
	checkTimeout = 10 * time.Second // for one question
	// checkPause is the least between two rounds, and checkShare how many times as
	// long as the last round took: whoever revokes in a loop asks no more of the
	// database than that, however many credentials there are.
	checkPause = time.Second
	checkShare = 10
)

// Recheck has the hub ask about the credentials of open streams now, and not
// only when [Config.Recheck] is over: one may have been revoked. It does not wait.
func (h *Hub) Recheck() {
	select {
	case h.doubt <- struct{}{}:
	default: // there is doubt already
	}
}

// recheck asks until ctx ends.
func (h *Hub) recheck(ctx context.Context) {
	if h.cfg.Left == nil {
		return
	}
	t := time.NewTicker(h.cfg.Recheck)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-h.doubt:
		}
		begun := time.Now()
		h.checkAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(max(checkPause, checkShare*time.Since(begun)), h.cfg.Recheck)):
		}
	}
}

// checkAll asks about each credential once, however many streams it has. While
// nobody can tell, the streams stay: a database that is away must not send
// everybody away as well.
func (h *Hub) checkAll(ctx context.Context) {
	for ids := range slices.Chunk(h.credentials(), checkAtOnce) {
		left, err := h.askLeft(ctx, ids)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			h.metrics.unchecked.Inc()
			h.log.WarnContext(ctx, "push cannot tell whether the credentials of open streams are good yet", "error", err)
			continue
		}
		h.settle(ids, left)
	}
}

func (h *Hub) credentials() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := make([]string, 0, len(h.bearers))
	for id := range h.bearers {
		ids = append(ids, id)
	}
	return ids
}

func (h *Hub) askLeft(ctx context.Context, ids []string) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	left, err := h.cfg.Left(ctx, ids)
	if err == nil && len(left) != len(ids) {
		err = fmt.Errorf("%d answers about %d credentials", len(left), len(ids))
	}
	return left, err
}

// settle ends what has to end, and notes the ends that are known now.
func (h *Hub) settle(ids []string, left []time.Duration) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, id := range ids {
		b := h.bearers[id]
		switch {
		case b == nil: // all of them have gone
		case left[i] <= 0:
			h.endBearer(b)
		case left[i] < h.cfg.MaxLife: // later ones are asked about again before
			h.endsBy(b, now.Add(left[i]))
		}
	}
}
