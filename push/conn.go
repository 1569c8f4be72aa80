package push

import (
	"sync"
	"time"
)

// conn is one client's connection. The hub appends to its queue and never
// waits for it; the goroutine of its request empties the queue.
type conn struct {
	// Guarded by the hub's mutex.
	channel  *channel
	at       int // place in channel.conns
	spoke    int // of the wheel, -1 while not on it
	spokeAt  int
	until    time.Time
	personal *cursor // set until the hub's own cursors are right for this client
	warned   bool    // personal outlived a heartbeat

	wake  chan struct{} // holds one token when there is something to do
	limit int

	mu        sync.Mutex
	queue     [][]byte
	end       []byte // last bytes to write, set once, when the connection is to end
	ended     bool
	interrupt func(time.Time) // sets the write deadline; nil once the request is over
}

func newConn(limit int) *conn {
	return &conn{spoke: -1, limit: limit, wake: make(chan struct{}, 1)}
}

// offer queues b; it reports false when the client is too far behind.
func (c *conn) offer(b []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return true
	}
	if len(c.queue) >= c.limit {
		return false
	}
	c.queue = append(c.queue, b)
	c.signal()
	return true
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// finish ends the connection once what is queued is written and then last, all
// of it within grace.
func (c *conn) finish(last []byte, grace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop(last, grace)
}

// evict ends the connection at once, queue and all: its client does not read.
// It comes back with its cursor.
func (c *conn) evict() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = nil
	c.stop(nil, 0)
}

func (c *conn) stop(last []byte, grace time.Duration) {
	if c.ended {
		return
	}
	c.ended, c.end = true, last
	if c.interrupt != nil {
		c.interrupt(time.Now().Add(grace))
	}
	c.signal()
}

// take empties the queue into the caller's hands, leaving spare in its place.
func (c *conn) take(spare [][]byte) (batch [][]byte, end []byte, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch, c.queue = c.queue, spare
	return batch, c.end, c.ended
}

// extend gives the next write its time, unless the connection is ending: then
// the deadline that came with the end stands.
func (c *conn) extend(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended && c.interrupt != nil {
		c.interrupt(time.Now().Add(timeout))
	}
}

// over forbids to touch the request's writer from elsewhere.
func (c *conn) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupt = nil
	c.ended, c.queue = true, nil
}
