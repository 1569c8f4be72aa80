package push

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// stream writes one connection that net/http keeps: over HTTP/2 or TLS.
type stream struct {
	conn    *conn
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	hub     *Hub
}

// run writes opening and then whatever is queued until the client goes or the
// connection is ended.
func (s *stream) run(ctx context.Context, opening [][]byte) {
	s.conn.arm(s.rc.SetWriteDeadline)
	_ = s.rc.SetReadDeadline(time.Time{}) // the server's is for requests, not for streams
	if !s.write([][]byte{retry(s.hub.cfg.Retry)}) || !s.write(opening) {
		return
	}
	s.follow(ctx)
}

// follow is apart from run so that the opening is not held while the
// connection lives.
func (s *stream) follow(ctx context.Context) {
	var spare [][]byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.conn.wake:
		}
		batch, end, ended := s.conn.take(spare)
		if !s.write(batch) {
			return
		}
		if ended {
			s.write([][]byte{end})
			return
		}
		spare = emptied(batch)
	}
}

const (
	// smallQueue is what an idle connection may keep of its queue's array.
	smallQueue = 8
	// writeChunk is how much has to go out within one write timeout.
	writeChunk = 64 << 10
)

// emptied readies a batch's array for use as the queue.
func emptied(batch [][]byte) [][]byte {
	if cap(batch) > smallQueue {
		return nil
	}
	clear(batch)
	return batch[:0]
}

// write sends messages with one flush for about every writeChunk bytes.
func (s *stream) write(messages [][]byte) bool {
	for len(messages) > 0 {
		s.conn.extend(s.timeout)
		n, size := 0, 0
		for ; n < len(messages) && size < writeChunk; n++ {
			if _, err := s.w.Write(messages[n]); err != nil { //nolint:gosec // an event stream, not markup
				return false // the client is gone or stuck: there is nobody to tell
			}
			size += len(messages[n])
		}
		if err := s.rc.Flush(); err != nil {
			if errors.Is(err, http.ErrNotSupported) {
				s.hub.log.Error("push needs a response writer that can flush or unwrap", "error", err)
			}
			return false
		}
		s.hub.metrics.delivered.Add(float64(n))
		messages = messages[n:]
	}
	return true
}
