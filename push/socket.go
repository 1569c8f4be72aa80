package push

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"
)

// socket writes one connection that was taken over from net/http, whose own way
// keeps two goroutines and two buffers for each. Here a goroutine with a small
// stack waits for the client to go, and a few writers serve all of them.
type socket struct {
	conn    *conn
	net     net.Conn
	raw     syscall.RawConn // nil: every write may wait
	opening [][]byte        // written first, by whoever serves it first
	unread  [1]byte
}

// takeOver makes a socket of a request over plain HTTP/1, nil where there is none
// to be had: TLS and HTTP/2 stay with net/http. The answer's head is ready as
// its first bytes; it ends with its connection, so that messages need no chunks
// around them.
func takeOver(w http.ResponseWriter, r *http.Request) *socket {
	if r.ProtoMajor != 1 || r.TLS != nil {
		return nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	_ = conn.SetDeadline(time.Time{}) // the server's is for requests, not for streams
	s := &socket{net: conn, opening: [][]byte{head(w.Header())}}
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			s.raw = raw
		}
	}
	return s
}

func head(header http.Header) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	header = header.Clone()
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	header.Set("Connection", "close")
	_ = header.Write(&b) // a buffer takes all
	b.WriteString("\r\n")
	return b.Bytes()
}

// watch returns once the client is gone or the socket closed. Who sends
// something after the request is not a client of this protocol.
func (s *socket) watch() {
	_, _ = s.net.Read(s.unread[:])
	_ = s.net.Close()
}

// pump writes what is queued until there is nothing, never waiting for the
// client: one that does not take all at once gets a goroutine of its own until
// it has caught up.
func (h *Hub) pump(s *socket, scratch []byte) {
	batch := s.opening
	s.opening = nil
	for {
		rest, err := s.try(batch, scratch)
		if err != nil {
			_ = s.net.Close()
			return
		}
		if len(rest) > 0 {
			h.catching.Go(func() { h.catchUp(s, rest) })
			return
		}
		h.metrics.delivered.Add(float64(len(batch)))
		var done bool
		if batch, done = h.more(s, batch); done {
			return
		}
	}
}

// more is what came since spare was written; done when that is nothing, or the
// connection has ended and has its last bytes.
func (h *Hub) more(s *socket, spare [][]byte) (batch [][]byte, done bool) {
	batch, end, ended := s.conn.rest(emptied(spare))
	switch {
	case ended && len(batch) == 0 && end == nil:
		_ = s.net.Close()
		return nil, true
	case ended && end != nil:
		return append(batch, end), false
	}
	return batch, len(batch) == 0
}

// catchUp waits for a client that reads slower than it is written to, up to the
// write timeout for each chunk.
func (h *Hub) catchUp(s *socket, batch [][]byte) {
	s.conn.arm(s.net.SetWriteDeadline)
	for {
		n := len(batch)
		for len(batch) > 0 {
			s.conn.extend(h.cfg.WriteTimeout)
			chunk, left := cut(batch)
			if _, err := chunk.WriteTo(s.net); err != nil {
				_ = s.net.Close()
				return
			}
			batch = left
		}
		h.metrics.delivered.Add(float64(n))
		var done bool
		if batch, done = h.more(s, batch); done {
			return
		}
	}
}

// cut is as many messages as should go out within one write timeout, at least
// one, and the others.
func cut(messages [][]byte) (net.Buffers, [][]byte) {
	n, size := 0, 0
	for ; n < len(messages) && size < writeChunk; n++ {
		size += len(messages[n])
	}
	return slices.Clone(messages[:n]), messages[n:]
}

// try writes messages as far as the client's socket takes them, and returns what
// it does not.
func (s *socket) try(messages [][]byte, scratch []byte) (rest [][]byte, err error) {
	if s.raw == nil {
		return messages, nil
	}
	for len(messages) > 0 {
		chunk, n := gather(messages, scratch)
		sent, err := writeNow(s.raw, chunk)
		if err != nil {
			return nil, err
		}
		if sent < len(chunk) {
			return append([][]byte{bytes.Clone(chunk[sent:])}, messages[n:]...), nil
		}
		messages = messages[n:]
	}
	return nil, nil
}

// gather copies messages into scratch as far as they fit, so that they go out
// with one call; one that is larger goes as it is.
func gather(messages [][]byte, scratch []byte) (chunk []byte, n int) {
	if len(messages) == 1 || len(messages[0]) >= cap(scratch) {
		return messages[0], 1
	}
	chunk = scratch[:0]
	for ; n < len(messages) && len(chunk)+len(messages[n]) <= cap(scratch); n++ {
		chunk = append(chunk, messages[n]...)
	}
	return chunk, n
}
