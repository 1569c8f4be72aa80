package consumer

import "sync"

// work is the lanes that are ready for a worker, and the partitions that have
// some, in turn. Its length is bounded by the records in flight and the parked
// keys that are due. The session's lock guards it.
type work struct {
	some  sync.Cond
	parts []*partition
	lanes int // ready, of all partitions
	crew  int // workers there are
	most  int // and how many there may be
	over  bool
}

func newWork(mu *sync.Mutex) *work {
	w := &work{}
	w.some.L = mu
	return w
}

func (w *work) push(l *lane) {
	if len(l.p.ready) == 0 {
		w.parts = append(w.parts, l.p)
	}
	l.p.ready = append(l.p.ready, l)
	w.lanes++
	w.some.Signal()
}

// next waits for a partition with ready lanes. It is nil for a worker that is to
// go: all once closed, and those that are too many. Who gets a partition takes
// lanes, and puts it back if any are left.
func (w *work) next() *partition {
	for {
		for len(w.parts) == 0 && !w.over && w.crew <= w.most {
			w.some.Wait()
		}
		if w.over {
			return nil
		}
		if w.crew > w.most {
			w.crew--
			w.some.Signal() // it may have been meant for somebody who stays
			return nil
		}
		p := w.parts[0]
		w.parts[0] = nil
		w.parts = w.parts[1:]
		if !p.stopping {
			return p
		}
		w.lanes -= len(p.ready)
		p.ready = nil
	}
}

// back puts a partition behind the others if it has lanes left.
func (w *work) back(p *partition) {
	if len(p.ready) > 0 {
		w.parts = append(w.parts, p)
	}
}

// others visits the partitions besides p that have ready lanes, each once, until
// enough says so.
func (w *work) others(p *partition, enough func() bool, visit func(*partition)) {
	var kept []*partition
	for i, q := range w.parts {
		if enough() {
			kept = append(kept, w.parts[i:]...)
			break
		}
		if q != p && !q.stopping {
			visit(q)
		}
		if len(q.ready) > 0 {
			kept = append(kept, q)
		}
	}
	w.parts = kept
}

// pick takes lanes off p that fit, in their order, until enough says so. It
// looks at no more than so many.
func (w *work) pick(p *partition, most int, enough func() bool, fits func(*lane) bool) {
	var kept []*lane
	i := 0
	for ; i < len(p.ready) && i < most && !enough(); i++ {
		if l := p.ready[i]; !fits(l) {
			kept = append(kept, l)
		}
		p.ready[i] = nil
	}
	w.lanes -= i - len(kept)
	copy(p.ready[i-len(kept):], kept)
	p.ready = p.ready[i-len(kept):]
}

func (w *work) close() {
	w.some.L.Lock()
	w.over = true
	w.some.L.Unlock()
	w.some.Broadcast()
}
