package consumer

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// session is one run of a group's member.
//
// Locks: flushing is taken before mu; mu is held for bookkeeping only, never
// across the database or the broker.
type session struct {
	*Group
	ctx   context.Context // of handlers: does not end with Run's, see release
	cl    *kgo.Client
	ready chan struct{} // closed when cl is set: callbacks may come before

	work   *work
	room   chan struct{} // a signal that something left memory
	deaths chan struct{} // a signal that an event died
	down   atomic.Bool   // infrastructure is missing, as far as told

	flushing sync.Mutex

	mu       sync.Mutex
	parts    map[place]*partition
	inFlight int
	bytes    int
}

func newSession(g *Group, ctx context.Context) *session { //nolint:revive // ctx is the handlers', not the call's
	return &session{
		Group: g, ctx: ctx, ready: make(chan struct{}),
		work: newWork(), room: make(chan struct{}, 1), deaths: make(chan struct{}, 1), parts: map[place]*partition{},
	}
}

// take puts polled messages into their lanes. A nil message is a record that
// nobody handles: it only has to be passed.
func (s *session) take(recs []*kgo.Record, messages []*message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, rec := range recs {
		p := s.parts[place{rec.Topic, rec.Partition}]
		if p == nil || p.stopping {
			continue // whoever owns it now reads it again
		}
		mark, m := p.tracker.add(rec.Offset, rec.LeaderEpoch), messages[i]
		if m == nil {
			p.tracker.finish(mark)
			continue
		}
		m.mark, m.held = mark, true
		s.inFlight++
		s.bytes += m.size()
		l := p.lane(string(rec.Key))
		l.queue = append(l.queue, m)
		s.wake(l)
	}
	s.meter.inFlight.Set(float64(s.inFlight))
}

// wake makes a lane ready unless it is on its way already.
func (s *session) wake(l *lane) {
	if !l.busy {
		l.busy = true
		s.work.push(l)
	}
}

// finish records that the lane's first n messages are done with for good.
func (s *session) finish(l *lane, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range l.queue[:n] {
		l.p.tracker.finish(m.mark)
		s.drop(m)
	}
	l.pop(n)
}

// drop frees a message's room in memory.
func (s *session) drop(m *message) {
	if !m.held {
		return
	}
	m.held = false
	s.inFlight--
	s.bytes -= m.size()
	s.meter.inFlight.Set(float64(s.inFlight))
	select {
	case s.room <- struct{}{}:
	default:
	}
}

// space waits until records may be polled, and says how many. It is 0 when
// ctx ends.
func (s *session) space(ctx context.Context) int {
	for {
		s.mu.Lock()
		n := s.cfg.MaxInFlight - s.inFlight
		if s.bytes >= s.cfg.MaxInFlightBytes {
			n = 0
		}
		s.mu.Unlock()
		if n > 0 {
			return n
		}
		select {
		case <-ctx.Done():
			return 0
		case <-s.room:
		}
	}
}

// setParked records that a key's lane has rows in the parked table.
func (s *session) setParked(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.p.parked[l.key] = struct{}{}
	s.countParked()
}

func (s *session) countParked() {
	n := 0
	for _, p := range s.parts {
		n += len(p.parked)
	}
	s.meter.keys.Set(float64(n))
}
