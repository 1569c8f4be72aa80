package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/pg/daypart"
)

// session is one run of a group's member.
//
// Locks: flushing is taken before throttling, and that before mu; mu is held for bookkeeping only, never
// across the database or the broker.
type session struct {
	*Group
	ctx   context.Context // of handlers: does not end with Run's, see release
	cl    *kgo.Client
	ready chan struct{} // closed when cl is set: callbacks may come before

	restart func()      // ends this run so that another begins
	again   atomic.Bool // it was called

	work       *work
	crew       sync.WaitGroup // workers, as many as work says
	cutoff     atomic.Int64   // before this, in milliseconds of Unix time, claims may be gone
	turn       chan struct{}  // held by the bundle whose turn it is, see turn.go
	turnsUntil atomic.Int64   // nanoseconds of Unix time
	policies   atomic.Bool    // the database has policies by tenant, as far as known
	room       chan struct{}  // a signal that something left memory
	deaths     chan struct{}  // a signal that an event died
	down       atomic.Bool    // infrastructure is missing, as far as told
	untoldOnce atomic.Bool    // it was logged that the broker was not told

	telling sync.Mutex // held while a tick tells the broker
	leaving bool       // the group; guarded by telling

	flushing   sync.Mutex
	throttling sync.Mutex

	mu       sync.Mutex
	parts    map[place]*partition
	inFlight int
	bytes    int
	cooled   []place // partitions whose hot lane has drained, for unthrottle
}

func newSession(g *Group, ctx context.Context) *session { //nolint:revive // ctx is the handlers', not the call's
	s := &session{
		Group: g, ctx: ctx, ready: make(chan struct{}), turn: make(chan struct{}, 1),
		room: make(chan struct{}, 1), deaths: make(chan struct{}, 1), parts: map[place]*partition{},
	}
	s.work = newWork(&s.mu)
	s.policies.Store(true)
	s.cutoff.Store(daypart.Day(time.Now().Add(-g.cfg.InboxKeep)).UnixMilli())
	return s
}

// take puts polled messages into their lanes. A nil message is a record that
// nobody handles: it only has to be passed.
func (s *session) take(recs []*kgo.Record, messages []*message) {
	s.throttle(s.queue(recs, messages)...)
}

// queue returns partitions that have become hot.
func (s *session) queue(recs []*kgo.Record, messages []*message) (hot []place) {
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
		l := p.lane(s.cfg.lane(rec))
		l.queue = append(l.queue, m)
		l.bytes += m.size()
		s.wake(l)
		if p.hot == nil && s.hot(l) {
			p.hot = l
			hot = append(hot, p.place)
		}
	}
	s.meter.inFlight.Set(float64(s.inFlight))
	return hot
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
	s.finishLocked(l, n)
}

func (s *session) finishLocked(l *lane, n int) {
	for _, m := range l.queue[:n] {
		l.p.tracker.finish(m.mark)
		s.drop(m)
	}
	l.pop(n)
	s.cool(l)
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

// setParked records that a key has rows in the parked table.
func (s *session) setParked(p *partition, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.parked[key] = struct{}{}
	s.countParked()
}

func (s *session) countParked() {
	n, stopped := 0, 0
	for _, p := range s.parts {
		n += len(p.parked)
		if p.fault != faultNone {
			stopped++
		}
	}
	s.meter.keys.Set(float64(n))
	s.meter.stopped.Set(float64(stopped))
}
