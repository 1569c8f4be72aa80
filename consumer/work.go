package consumer

import "sync"

// work is the queue of lanes that are ready for a worker. Its length is
// bounded by the records in flight and the parked keys that are due.
type work struct {
	mu    sync.Mutex
	some  sync.Cond
	lanes []*lane
	over  bool
}

func newWork() *work {
	w := &work{}
	w.some.L = &w.mu
	return w
}

func (w *work) push(l *lane) {
	w.mu.Lock()
	w.lanes = append(w.lanes, l)
	w.mu.Unlock()
	w.some.Signal()
}

// pop waits for a lane. It is nil once closed.
func (w *work) pop() *lane {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.lanes) == 0 && !w.over {
		w.some.Wait()
	}
	if w.over {
		return nil
	}
	l := w.lanes[0]
	w.lanes[0] = nil
	w.lanes = w.lanes[1:]
	return l
}

func (w *work) close() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.some.Broadcast()
}
