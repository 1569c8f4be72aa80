package consumer

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// tick saves the positions of all partitions and tells the broker.
func (s *session) tick(ctx context.Context) {
	s.mu.Lock()
	parts := make([]*partition, 0, len(s.parts))
	for _, p := range s.parts {
		parts = append(parts, p)
	}
	s.mu.Unlock()
	s.flush(ctx, parts)
	s.commitUnlessLeaving(ctx, parts)
	s.reclaim()
	s.seekReset(ctx)
}

// flush saves in the database how far partitions have come. What it could not
// save is repeated to the next owner, and known to the inbox.
func (s *session) flush(ctx context.Context, parts []*partition) {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	moved := s.moved(parts)
	if len(moved) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	saved, err := s.save(ctx, moved)
	if err != nil {
		s.outage(err)
		return
	}
	for _, p := range s.settle(moved, saved) {
		s.cede(p)
	}
}

// settle notes what is saved, and returns the partitions whose position was
// refused.
func (s *session) settle(moved, saved []position) (refused []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range saved {
		if p := s.parts[m.place]; p != nil && p.owner == m.owner {
			p.saved = m.next
		}
	}
	for _, m := range moved {
		if p := s.parts[m.place]; p != nil && p.owner == m.owner && !slices.Contains(saved, m) {
			refused = append(refused, p)
		}
	}
	return refused
}

func (s *session) moved(parts []*partition) []position {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []position
	for _, p := range parts {
		// One that is not current was given away: its position is the next
		// owner's to save.
		if s.behind(p) && s.parts[p.place] == p && p.ceded.IsZero() && p.fault == faultNone {
			out = append(out, position{p.place, p.owner, p.topicID, p.tracker.epoch, p.tracker.next, 0})
		}
	}
	return out
}

// commit tells the broker, in one request, what the database has and the
// broker has not. That it fails is worth a line and another try at the next tick:
// nobody reads it to go on from, but whoever looks at lag would see what was
// handled long ago.
func (s *session) commit(ctx context.Context, cl *kgo.Client, parts []*partition) {
	untold := s.untold(parts)
	if len(untold) == 0 {
		return
	}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for _, p := range untold {
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.topic][p.id] = kgo.EpochOffset{Epoch: p.epoch, Offset: p.next}
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	cl.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err = errors.Join(err, refused(resp)); err == nil {
			s.told(untold)
		} else if s.untoldOnce.CompareAndSwap(false, true) {
			s.log.WarnContext(ctx, "offsets not committed to the broker; tried again each time positions are saved", "error", err)
		}
	})
}

// commitUnlessLeaving leaves what is yet to be told to the giving back of the
// partitions: an answer that came after the group was left would be complained of.
func (s *session) commitUnlessLeaving(ctx context.Context, parts []*partition) {
	s.telling.Lock()
	defer s.telling.Unlock()
	if !s.leaving {
		s.commit(ctx, s.cl, parts)
	}
}

// untold are the saved positions that the broker was not told by this owner: the
// one before may have died between saving and telling.
func (s *session) untold(parts []*partition) (out []position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		if p.saved > 0 && p.saved != p.told && s.parts[p.place] == p && p.ceded.IsZero() && p.fault == faultNone {
			out = append(out, position{place: p.place, owner: p.owner, epoch: p.tracker.epoch, next: p.saved})
		}
	}
	return out
}

func (s *session) told(them []position) {
	s.untoldOnce.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range them {
		if p := s.parts[to.place]; p != nil && p.owner == to.owner {
			p.told = to.next
		}
	}
}

func refused(resp *kmsg.OffsetCommitResponse) error {
	if resp == nil {
		return nil
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

// behind tells whether the saved position of p is not where it is. It is ahead
// of it where events are passed before they are handled.
func (s *session) behind(p *partition) bool {
	if s.cfg.Delivery == AtMostOnce {
		return p.tracker.next > p.saved
	}
	return p.tracker.next != p.saved
}
