package push

import (
	"sync"
	"time"
)

// conn is one client's connection. The hub appends to its queue and never
// waits for it; the goroutine of its request empties the queue, or whichever
// writer serves its socket.
type conn struct {
	// Guarded by the hub's mutex.
	channel  *channel
	at       int // place in channel.conns
	spoke    int // of the wheel, -1 while not on it
	spokeAt  int
	until    time.Time
	personal *cursor // set until the hub's own cursors are right for this client
	warned   bool    // personal outlived a heartbeat
	bearer   *bearer // nil without a credential
	bearerAt int     // place in bearer.conns

	wake   chan struct{} // holds one token when there is something to do; nil with a socket
	socket *socket
	serve  func(*socket) // has the socket written to
	limit  int

	mu        sync.Mutex
	queue     [][]byte
	names     []string // of queue's entries, "" of what must not be left out; nil while all are so
	end       []byte   // last bytes to write, set once, when the connection is to end
	ended     bool
	busy      bool            // the socket is being written to, or will be
	interrupt func(time.Time) // sets the write deadline; nil once the request is over
}

func newConn(limit int) *conn { return &conn{spoke: -1, limit: limit} }

// onRequest has the goroutine of the request write.
func (c *conn) onRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wake = make(chan struct{}, 1)
	c.signal() // of what came before
}

// onSocket has serve write, which is asked once and again when there is more after
// there was nothing.
func (c *conn) onSocket(s *socket, serve func(*socket)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.conn, c.socket, c.serve, c.busy = c, s, serve, true
	serve(s)
}

// offer queues b, the newest of name unless that is empty; it reports false when
// the client is too far behind.
func (c *conn) offer(b []byte, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return true
	}
	if len(c.queue) >= c.limit {
		if c.thin(name); len(c.queue) >= c.limit {
			return false
		}
	}
	if name != "" && c.names == nil {
		c.names = make([]string, len(c.queue), len(c.queue)+smallQueue)
	}
	if c.names != nil {
		c.names = append(c.names, name)
	}
	c.queue = append(c.queue, b)
	c.signal()
	return true
}

// thin drops what is not the newest of its name any more, next being the name of
// what comes: somebody who reads slowly sees the same in the end. What is left
// keeps its order, so that each id still says what was sent before it.
func (c *conn) thin(next string) {
	if c.names == nil {
		return
	}
	newer := map[string]bool{next: true}
	at := len(c.queue)
	for i := len(c.queue) - 1; i >= 0; i-- {
		name := c.names[i]
		if name != "" && newer[name] {
			continue
		}
		newer[name] = true
		at--
		c.queue[at], c.names[at] = c.queue[i], name
	}
	c.queue, c.names = c.queue[at:], c.names[at:]
}

// signal has what waits written. The mutex is held.
func (c *conn) signal() {
	if c.socket != nil {
		if !c.busy {
			c.busy = true
			c.serve(c.socket)
		}
		return
	}
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
	c.queue, c.names = nil, nil
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
	batch, c.queue, c.names = c.queue, spare, nil
	return batch, c.end, c.ended
}

// rest is take for a socket: where nothing waits and nothing ends, it is
// served no more until there is something.
func (c *conn) rest(spare [][]byte) (batch [][]byte, end []byte, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 && !c.ended {
		c.busy = false
		if c.interrupt != nil {
			c.interrupt(time.Time{})
			c.interrupt = nil
		}
		return nil, nil, false
	}
	batch, end = c.queue, c.end
	c.queue, c.names, c.end = spare, nil, nil
	return batch, end, c.ended
}

// arm lets the hub shorten the deadline of a write that is stuck.
func (c *conn) arm(deadline func(time.Time) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended { // ended before it began
		_ = deadline(time.Now().Add(endGrace))
		return
	}
	c.interrupt = func(t time.Time) { _ = deadline(t) }
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
	c.ended, c.queue, c.names = true, nil, nil
}
