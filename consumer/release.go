package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// giveUp is the longest a handler may go on after its context ended, before
// its partition is given away all the same.
const giveUp = 2 * time.Second

// flushWithin bounds what a rebalance waits for database and broker.
const flushWithin = 3 * time.Second

// revoked gives partitions back in order: what is in handlers may finish, and
// the position is saved for whoever comes next.
func (s *session) revoked(ctx context.Context, cl *kgo.Client, gone map[string][]int32) {
	parts := s.release(gone)
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	s.flush(ctx, parts)
	s.commit(ctx, cl, parts)
	s.disown(parts)
}

// lost is revoked without a word to the broker, which thinks us dead.
func (s *session) lost(ctx context.Context, _ *kgo.Client, gone map[string][]int32) {
	parts := s.release(gone)
	s.flush(ctx, parts)
	s.disown(parts)
}

// release stops work on partitions: nothing new begins, what is queued waits
// for the next owner, and handlers have Config.Drain to finish. A handler that
// does not is cut off, which undoes its transaction.
func (s *session) release(gone map[string][]int32) []*partition {
	s.mu.Lock()
	var parts []*partition
	for topic, ids := range gone {
		for _, id := range ids {
			if p := s.parts[place{topic, id}]; p != nil {
				p.halt()
				parts = append(parts, p)
			}
		}
	}
	s.mu.Unlock()
	if !quiet(parts, s.cfg.Drain) {
		for _, p := range parts {
			p.cancel()
		}
		if !quiet(parts, giveUp) {
			s.log.Error("a handler ignores that its context has ended; its partition is given away without it")
		}
	}
	return parts
}

func quiet(parts []*partition, within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	for _, p := range parts {
		select {
		case <-p.quiet:
			continue
		default:
		}
		select {
		case <-p.quiet:
		case <-t.C:
			return false
		}
	}
	return true
}

func (s *session) disown(parts []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		s.close(p)
		if s.parts[p.place] == p {
			delete(s.parts, p.place)
		}
	}
	s.countParked()
}

// close forgets what a partition holds.
func (s *session) close(p *partition) {
	p.halt()
	p.cancel()
	for _, l := range p.lanes {
		for _, m := range l.queue {
			s.drop(m)
		}
	}
}
