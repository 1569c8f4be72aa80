package consumer

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// errOver says that the partition is not ours for new attempts any more.
var errOver = errors.New("partition given up")

// leave puts a lane back: behind the others if it has more to do, aside for
// wait if it must.
func (s *session) leave(l *lane, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.p.stopping:
	case wait > 0:
		l.timer = time.AfterFunc(wait, func() { s.resume(l) })
	case l.due || len(l.queue) > 0:
		s.work.push(l)
	default:
		l.busy = false
		delete(l.p.lanes, l.key)
	}
}

func (s *session) resume(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.timer = nil
	if !l.p.stopping {
		s.work.push(l)
	}
}

// step does one piece of a lane's work and says how long the lane then has to
// wait. A parked key's events are tried before what came in since is parked
// behind them, unless that is much: what waits for a long drain would fill the
// memory that other keys need. Either order keeps the key's.
func (s *session) step(l *lane) time.Duration {
	s.mu.Lock()
	due, behind, queued := l.due, l.isParked(), len(l.queue)
	l.moved = due && behind && !l.moved && queued >= s.cfg.atOnce()
	move := l.moved
	s.mu.Unlock()
	switch {
	case move:
		return s.queueUp(l)
	case due:
		return s.retry(l)
	case queued == 0:
		return 0
	case behind:
		return s.queueUp(l)
	case s.held(l):
		return dueEvery
	case s.cfg.Delivery == AtMostOnce && l.key == wholePartition:
		return s.atMostOnce(l)
	default:
		s.mu.Lock()
		m := l.queue[0]
		s.mu.Unlock()
		wait, _ := s.handle(l, m)
		return wait
	}
}

// handle tries the first message of a lane alone. done is false if it remains
// to be done, after wait, or if the lane's next step is another one.
func (s *session) handle(l *lane, m *message) (wait time.Duration, done bool) {
	what, wait, err := s.attempt(l, m, nil)
	switch {
	case wait > 0:
		return wait, false
	case err == nil:
		s.meter.count(m.route.typ, what, 1)
		s.finish(l, 1)
		return 0, true
	case errors.Is(err, errOver):
		return 0, false
	}
	return s.failed(l, m, err), false
}

// failed decides between another try in place and giving up here.
func (s *session) failed(l *lane, m *message, err error) time.Duration {
	if gap, _ := asGap(err); gap != nil {
		s.hold(l, m, gap)
		return 0
	}
	if l.attempts++; l.attempts == 1 {
		l.since = time.Now()
	}
	if errors.Is(err, ErrForgotten) && l.key != wholePartition {
		s.setAside(l, m, When(classForgotten, nil), err)
		return 0
	}
	r := s.rule(err)
	if s.cfg.Ordering == ByPartition && l.key == wholePartition {
		return s.failedInPlace(l, m, r, err)
	}
	if wait, again := r.again(l.attempts, time.Since(l.since), s.cfg.Retry.Within); again {
		return wait
	}
	s.setAside(l, m, r, err)
	return 0
}

// behindAtOnce bounds how many messages are queued up behind a parked one in
// one statement.
const behindAtOnce = 64

func (c Config) atOnce() int { return min(behindAtOnce, max(c.MaxInFlight/8, 1)) }

// queueUp moves what came in for a parked key behind the parked events.
func (s *session) queueUp(l *lane) time.Duration {
	s.mu.Lock()
	batch := append([]*message(nil), l.queue[:min(len(l.queue), behindAtOnce)]...)
	s.mu.Unlock()
	if s.persist(l.p, func(ctx context.Context) error { return s.parkBehind(ctx, l, batch) }) != nil {
		return 0
	}
	for _, m := range batch {
		s.meter.count(m.route.typ, parked, 1)
	}
	s.finish(l, len(batch))
	return 0
}

func (s *session) logFailure(what string, m *message, err error, attempts int) {
	attrs := []any{
		"topic", m.pos.Topic, "partition", m.pos.Partition, "offset", m.pos.Offset,
		"key", string(m.rec.Key), "event", m.env.ID, "type", m.route.typ, "attempts", attempts, "error", err,
	}
	var panicked *PanicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.Stack)))
	}
	s.log.Error(what, attrs...)
}
