package consumer

import (
	"context"
	"errors"
	"slices"
	"time"
)

// atMostOnce passes the first events of a lane, which is its partition's, and
// then handles them. They are decoded before: what waits for a registry is not
// lost.
func (s *session) atMostOnce(l *lane) time.Duration {
	s.mu.Lock()
	batch := slices.Clone(l.queue[:min(len(l.queue), s.most(l.queue[0].route))])
	s.mu.Unlock()
	faults := make([]error, len(batch))
	for i, m := range batch {
		faults[i] = safely(func() error { return s.decode(l.p.ctx, m) })
		if faults[i] != nil && s.isOutage(faults[i]) {
			return s.unknown(l, faults[i])
		}
	}
	if s.persist(l.p, func(ctx context.Context) error { return s.pass(ctx, l.p, batch[len(batch)-1]) }) != nil {
		return 0
	}
	for i, m := range batch {
		err := errors.Join(faults[i], l.p.ctx.Err())
		if err == nil {
			err = s.direct(l.p, m, nil)
		}
		if err != nil {
			s.logFailure("event lost", m, err, 1)
			s.meter.count(m.route.typ, lost, 1)
			continue
		}
		s.meter.count(m.route.typ, done, 1)
	}
	s.finish(l, len(batch))
	return 0
}

// pass saves that a partition's records up to m are done with.
func (s *session) pass(ctx context.Context, p *partition, m *message) error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	to := position{p.place, p.owner, p.topicID, m.rec.LeaderEpoch, m.rec.Offset + 1, 0}
	saved, err := s.save(ctx, []position{to})
	switch {
	case err != nil:
		return err
	case len(saved) == 0:
		return errFenced
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.saved = to.next
	return nil
}
