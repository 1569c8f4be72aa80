package push

import (
	"context"
	"math"
	"time"
)

// Credential is what a stream is opened by, and ends with at the latest.
type Credential struct {
	// ID tells it from others, and is not the secret itself. A stream without one
	// ends with its life alone.
	ID string
	// Ends is when it ends; zero where that is not known.
	Ends time.Time
}

// Endless is what is left to a credential without an end.
const Endless time.Duration = math.MaxInt64

type credentialKey struct{}

// WithCredential has the stream of the request that ctx is of end with c. It is
// for the caller of [Hub.Serve], who has authenticated the request.
func WithCredential(ctx context.Context, c Credential) context.Context {
	return context.WithValue(ctx, credentialKey{}, c)
}

func credentialOf(ctx context.Context) Credential {
	c, _ := ctx.Value(credentialKey{}).(Credential)
	return c
}

// bearer is who came with one credential: all of their connections end with it,
// and it is asked about once for all of them.
type bearer struct {
	id    string
	ends  time.Time // zero: not known
	timer *time.Timer
	conns []*conn
}

// bear notes whose c is, and when that ends. The hub's mutex is held.
func (h *Hub) bear(c *conn, by Credential) {
	if by.ID == "" {
		return
	}
	b := h.bearers[by.ID]
	if b == nil {
		b = &bearer{id: by.ID}
		h.bearers[by.ID] = b
	}
	c.bearer, c.bearerAt = b, len(b.conns)
	b.conns = append(b.conns, c)
	if !by.Ends.IsZero() {
		h.endsBy(b, by.Ends)
	}
}

// unbear is for a connection that goes. The last one of the list takes its place.
func (h *Hub) unbear(c *conn) {
	b := c.bearer
	if b == nil {
		return
	}
	end := len(b.conns) - 1
	b.conns[c.bearerAt] = b.conns[end]
	b.conns[c.bearerAt].bearerAt = c.bearerAt
	b.conns[end] = nil
	b.conns, c.bearer = b.conns[:end], nil
	if end > 0 {
		return
	}
	delete(h.bearers, b.id)
	if b.timer != nil {
		b.timer.Stop()
	}
}

// endsBy notes an end that was not known, or is earlier than the one that was:
// no end moves away. The connections end before, each at another moment, so that
// whoever has the next credential by then comes back with it; those that are left
// end with the timer. The hub's mutex is held.
func (h *Hub) endsBy(b *bearer, ends time.Time) {
	if !b.ends.IsZero() && !ends.Before(b.ends) {
		return
	}
	left := max(time.Until(ends), 1)
	b.ends = ends
	if b.timer == nil {
		b.timer = time.AfterFunc(left, func() { h.expire(b) })
	} else {
		b.timer.Reset(left)
	}
	for _, c := range b.conns {
		if c.until.After(ends) {
			c.until = time.Now().Add(lifetime(left))
		}
	}
}

func (h *Hub) expire(b *bearer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endBearer(b)
}

// endBearer ends whoever came with a credential that is good no more. The hub's
// mutex is held.
func (h *Hub) endBearer(b *bearer) {
	for len(b.conns) > 0 {
		h.metrics.outlived.Inc()
		h.end(b.conns[len(b.conns)-1], retry(h.cfg.Retry), endGrace)
	}
}
