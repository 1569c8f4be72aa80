package embedded

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	idleTimeout  = 10 * time.Minute // between requests, Kafka's default
	bodyTimeout  = time.Minute      // for each quantum of a request once begun
	writeTimeout = time.Minute      // for a client that no longer reads
	keepBuffer   = 1 << 20          // a larger one is let go after its request
)

// conn shows the broker nothing but whole requests that the guard passed.
type conn struct {
	net.Conn
	l   *listener
	src *bufio.Reader

	buf  []byte // the request being read
	left []byte // what the broker has yet to read of the one passed

	mu      sync.Mutex
	settled sync.Cond // pending fell or the connection closed
	pending int       // requests passed on and not answered yet
	closed  bool

	joining    *membership // whose join waits for its answer, see ghosts.go
	joinBehind int         // so many answers on
}

func newConn(inner net.Conn, l *listener) *conn {
	c := &conn{Conn: inner, l: l, src: bufio.NewReaderSize(inner, 8<<10)}
	c.settled.L = &c.mu
	return c
}

// Read implements net.Conn for the broker.
func (c *conn) Read(p []byte) (int, error) {
	for len(c.left) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

// next takes requests until one passes.
func (c *conn) next() error {
	raw, err := c.readFrame()
	if err != nil {
		return err
	}
	if c.l.broken.yes.Load() {
		return ErrWriteFailed
	}
	v := c.l.guard.judge(raw[4:])
	switch {
	case v.pass != nil:
		if v.joins != nil && !c.l.ghosts.joins(c, *v.joins) {
			return net.ErrClosed
		}
		if !v.silent {
			c.expect()
		}
		c.hand(raw, v.pass)
		return nil
	case v.answer != nil:
		c.l.refused.warn("embedded broker refused a request", "client", c.RemoteAddr().String(), "reason", v.reason)
		f, err := parseFrame(raw[4:])
		if err != nil {
			return err
		}
		return c.reply(f.response(v.answer))
	default:
		c.l.refused.warn("embedded broker closed a connection", "client", c.RemoteAddr().String(), "reason", v.reason)
		return fmt.Errorf("refused: %s", v.reason)
	}
}

func (c *conn) hand(raw, pass []byte) {
	if &pass[0] != &raw[4] { // rewritten
		raw = append(make([]byte, 4, 4+len(pass)), pass...)
		binary.BigEndian.PutUint32(raw, uint32(len(pass))) // #nosec G115 -- bounded by maxFrame
	}
	c.left = raw
}

// readFrame reads one request with its length prefix.
func (c *conn) readFrame() ([]byte, error) {
	if cap(c.buf) > keepBuffer {
		c.buf = nil
	}
	c.buf = append(c.buf[:0], 0, 0, 0, 0)
	if err := c.awaitHeader(c.buf); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(c.buf))
	if size < minFrame || size > maxFrame {
		c.l.refused.warn("embedded broker closed a connection", "client", c.RemoteAddr().String(), "reason", "request size", "bytes", size)
		return nil, fmt.Errorf("request of %d bytes", size)
	}
	for want := 4 + int(size); len(c.buf) < want; {
		have := len(c.buf)
		more := min(want-have, max(frameQuantum, have))
		c.buf = slices.Grow(c.buf, more)[:have+more]
		_ = c.SetReadDeadline(time.Now().Add(bodyTimeout))
		if _, err := io.ReadFull(c.src, c.buf[have:]); err != nil {
			return nil, err
		}
	}
	return c.buf, nil
}

// awaitHeader waits for the next request. A client that waits for an answer
// is not idle, however long that takes: joining a group may take minutes.
func (c *conn) awaitHeader(head []byte) error {
	got := 0
	for {
		_ = c.SetReadDeadline(time.Now().Add(idleTimeout))
		n, err := io.ReadFull(c.src, head[got:])
		got += n
		switch {
		case err == nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded) && got == 0 && c.waiting():
			continue
		default:
			return err
		}
	}
}

func (c *conn) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending > 0
}

func (c *conn) expect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending++
}

// Write implements net.Conn for the broker, which writes each answer in one
// piece.
func (c *conn) Write(p []byte) (int, error) {
	if c.l.broken.yes.Load() {
		return 0, errors.Join(ErrWriteFailed, c.Close())
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	c.pending--
	joined := c.hasJoined()
	c.mu.Unlock()
	c.settled.Broadcast()
	if joined != nil {
		c.l.ghosts.answered(c, *joined)
	}
	return n, err
}

// hasJoined tells whose join the answer was that has just been sent.
func (c *conn) hasJoined() *membership {
	if c.joining == nil {
		return nil
	}
	if c.joinBehind--; c.joinBehind > 0 {
		return nil
	}
	m := c.joining
	c.joining = nil
	return m
}

// reply sends an answer of the guard's own once all earlier requests are
// answered: clients match answers by their order.
func (c *conn) reply(p []byte) error {
	c.mu.Lock()
	for c.pending > 0 && !c.closed {
		c.settled.Wait()
	}
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := c.Conn.Write(p)
	return err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	cut := c.joining
	c.closed, c.joining = true, nil
	c.mu.Unlock()
	c.settled.Broadcast()
	c.l.forget(c)
	err := c.Conn.Close()
	if cut != nil {
		c.l.ghosts.cut(c, *cut)
	}
	return err
}
