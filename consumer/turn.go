package consumer

import "time"

// How long bundles take turns after a conflict, and how long one waits for its
// turn before it goes all the same: its turn may be held by a handler that
// waits for something else. Going at once could cost a deadlock, which takes as
// long by the server's default.
const (
	turnsFor = 30 * time.Second
	turnWait = time.Second
)

// contended notes that two transactions stood in each other's way. Those of
// many events lock much, in an order that nobody chose: where their handlers
// meet in the same rows they would run into deadlocks again and again, each of
// which costs the server's deadlock_timeout. One after another they do not.
func (s *session) contended() {
	s.turnsUntil.Store(time.Now().Add(turnsFor).UnixNano())
	s.meter.conflicts.Inc()
}

// takeTurn waits for the turn of a bundle, if they take turns, and returns what
// ends it.
func (s *session) takeTurn(p *partition) (release func()) {
	if time.Now().UnixNano() > s.turnsUntil.Load() {
		return func() {}
	}
	t := time.NewTimer(turnWait)
	defer t.Stop()
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }
	case <-t.C:
	case <-p.stop:
	}
	return func() {}
}
