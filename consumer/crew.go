package consumer

// SetWorkers changes how many handlers run at once, while the group runs or
// before; below 1 it is 1. More begin at once; those that are too many finish
// what they are at. Config.Workers is where it starts. The database's pool should
// have as many connections, and two: a worker without one waits for it.
func (g *Group) SetWorkers(n int) {
	n = max(n, 1)
	g.workers.Store(int64(n))
	g.meter.target.Set(float64(n))
	if s := g.running.Load(); s != nil {
		s.man()
	}
}

// man has as many workers as there are to be.
func (s *session) man() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work.over {
		return
	}
	for s.work.most = int(s.workers.Load()); s.work.crew < s.work.most; s.work.crew++ {
		s.crew.Go(s.worker)
	}
	s.work.some.Broadcast() // those that are too many go
}

// worker is one of the crew, from its first piece of work to its last.
func (s *session) worker() {
	s.meter.workers.Inc()
	defer s.meter.workers.Dec()
	s.serve()
}
