package push

import (
	"runtime"
	"sync"
)

// writers are a few goroutines that write what waits for the connections taken
// over from net/http. They never wait for a client, so as many as there are
// processors are enough.
type writers struct {
	mu     sync.Mutex
	some   *sync.Cond
	ready  []*socket
	closed bool
	all    sync.WaitGroup
}

func newWriters() *writers {
	w := &writers{}
	w.some = sync.NewCond(&w.mu)
	return w
}

func (h *Hub) startWriters() {
	for range 2 * runtime.GOMAXPROCS(0) {
		h.writers.all.Go(func() {
			scratch := make([]byte, 0, writeChunk)
			for s := h.writers.next(); s != nil; s = h.writers.next() {
				h.pump(s, scratch)
			}
		})
	}
}

// ask has a socket served. A socket is in ready once at most: conn.busy says so.
func (w *writers) ask(s *socket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = append(w.ready, s)
	w.some.Signal()
}

// next waits for a socket to serve; nil once there will be no more.
func (w *writers) next() *socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.ready) == 0 {
		if w.closed {
			return nil
		}
		w.some.Wait()
	}
	s := w.ready[0]
	w.ready[0] = nil
	if w.ready = w.ready[1:]; len(w.ready) == 0 {
		w.ready = nil // what a crowd left behind goes
	}
	return s
}

func (w *writers) stop() {
	w.mu.Lock()
	w.closed = true
	w.some.Broadcast()
	w.mu.Unlock()
	w.all.Wait()
}
