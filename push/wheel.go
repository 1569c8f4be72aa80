package push

import (
	"context"
	"math/rand/v2"
	"time"
)

// spokes is into how many parts the connections are dealt, so that heartbeats
// are spread over the interval instead of waking everybody at once.
const spokes = 64

// wheel holds every connection on one spoke. One ticker turns it.
type wheel struct {
	spokes [spokes][]*conn
	deal   int // spoke of the next connection
	at     int // spoke that is due
}

func (w *wheel) add(c *conn) {
	c.spoke, c.spokeAt = w.deal, len(w.spokes[w.deal])
	w.spokes[w.deal] = append(w.spokes[w.deal], c)
	w.deal = (w.deal + 1) % spokes
}

func (w *wheel) remove(c *conn) {
	if c.spoke < 0 {
		return
	}
	s := w.spokes[c.spoke]
	end := len(s) - 1
	s[c.spokeAt] = s[end]
	s[c.spokeAt].spokeAt = c.spokeAt
	s[end] = nil
	w.spokes[c.spoke], c.spoke = s[:end], -1
}

// turn runs until ctx ends.
func (h *Hub) turn(ctx context.Context) {
	t := time.NewTicker(max(h.cfg.Heartbeat/spokes, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			h.beat(now)
		}
	}
}

// beat serves the spoke that is due.
func (h *Hub) beat(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := h.wheel.spokes[h.wheel.at]
	h.wheel.at = (h.wheel.at + 1) % spokes
	if len(due) == 0 {
		return
	}
	fresh := h.sealer.heartbeat(h.window.layout, h.window.cursor())
	for i := len(due) - 1; i >= 0; i-- { // detach moves the last one into the gap
		c := due[i]
		switch {
		case now.After(c.until):
			h.end(c, retry(h.cfg.Retry), h.cfg.WriteTimeout)
		case h.ahead(c):
			h.remind(c)
		default:
			h.offer(c, fresh, "")
		}
	}
}

// ahead tells whether c has seen more of the log than this hub, and lets c have
// the hub's own cursors as soon as it has not. The hub's mutex is held, between
// two records.
func (h *Hub) ahead(c *conn) bool {
	if c.personal != nil && h.window.covers(c.personal) {
		c.personal = nil
	}
	return c.personal != nil
}

// remind keeps alive a client whose cursor is ahead of this hub. A hub lags
// others by milliseconds; where it has not caught up between two heartbeats the
// log must have lost what the client saw, and the client is told to begin
// again.
func (h *Hub) remind(c *conn) {
	if !c.warned {
		c.warned = true
		h.offer(c, bareHeartbeat, "")
		return
	}
	c.personal = nil
	h.metrics.resumes.WithLabelValues(string(outcomeExpired)).Inc()
	h.offer(c, h.sealer.signal(EventReset, string(outcomeExpired), h.window.layout, h.window.cursor()), "")
}

// lifetime spreads the ends of connections that began together.
func lifetime(most time.Duration) time.Duration {
	return most - time.Duration(rand.Int64N(int64(most)/5+1)) //nolint:gosec // no secret
}
