package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

// assign takes over partitions: it is asked where to begin reading them. The
// group's commits at the broker, which offsets holds, are not looked at.
//
// An error makes the client join again, so an assignment waits for the
// database as everything else does.
func (s *session) assign(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var places []place
	for topic, parts := range offsets {
		for id := range parts {
			places = append(places, place{topic, id})
		}
	}
	if len(places) == 0 {
		return offsets, nil
	}
	taken, err := s.prepare(ctx, places)
	if err != nil {
		if ctx.Err() == nil {
			s.outage(err)
		}
		return nil, err
	}
	s.restored()
	s.own(taken)
	for _, p := range taken {
		offsets[p.topic][p.id] = kgo.NewOffset().At(p.tracker.next).WithEpoch(-1)
	}
	return offsets, nil
}

// prepare makes partitions of places, from the broker's and the database's
// knowledge of them.
func (s *session) prepare(ctx context.Context, places []place) ([]*partition, error) {
	there, err := s.bounds(ctx, places)
	if err != nil {
		return nil, err
	}
	saved, err := s.positions(ctx, places)
	if err != nil {
		return nil, err
	}
	keys, err := s.loadParked(ctx, places)
	if err != nil {
		return nil, err
	}
	parts := make(map[place]*partition, len(places))
	var out []*partition
	var settle []position
	for _, at := range places {
		p, settled := s.open(at, there[at], saved)
		if settled != nil {
			settle = append(settle, *settled)
		}
		parts[at] = p
		out = append(out, p)
	}
	for _, k := range keys {
		parts[k.place].parked[k.key] = struct{}{}
	}
	if len(settle) == 0 {
		return out, nil
	}
	return out, s.save(ctx, settle)
}

// open decides where a partition begins. The position is to be saved at once
// where the decision must not be made again: "now" is later each time, and a
// fault is told once.
func (s *session) open(at place, b bounds, saved map[place]position) (*partition, *position) {
	var was *position
	if w, ok := saved[at]; ok {
		was = &w
	}
	next, fault := b.begin(was, s.cfg.From)
	p := newPartition(s.ctx, at, b.topicID, next)
	if fault != faultNone {
		s.meter.faults.WithLabelValues(s.cfg.Group, at.topic, fault).Inc()
		s.log.Error("the saved position does not fit the log: reading from its beginning", "fault", fault,
			"topic", at.topic, "partition", at.id, "saved", was.next, "log_start", b.start, "log_end", b.end)
	}
	if fault == faultNone && (was != nil || s.cfg.From == Beginning) {
		return p, nil
	}
	return p, &position{at, b.topicID, -1, next}
}

// own makes partitions current. One that we still have comes from an
// assignment that was broken off before it was read.
func (s *session) own(taken []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range taken {
		if old := s.parts[p.place]; old != nil {
			s.close(old)
		}
		s.parts[p.place] = p
	}
	s.countParked()
}

func (s *session) bounds(ctx context.Context, places []place) (map[place]bounds, error) {
	topics := map[string]bool{}
	for _, at := range places {
		topics[at.topic] = true
	}
	names := make([]string, 0, len(topics))
	for t := range topics {
		names = append(names, t)
	}
	ids, err := broker.TopicIDs(ctx, s.cl, names...)
	if err != nil {
		return nil, fmt.Errorf("ids of topics: %w", err)
	}
	adm := kadm.NewClient(s.cl)
	starts, err := adm.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("starts of topics: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("ends of topics: %w", err)
	}
	out := make(map[place]bounds, len(places))
	for _, at := range places {
		start, okStart := starts.Lookup(at.topic, at.id)
		end, okEnd := ends.Lookup(at.topic, at.id)
		id, okID := ids[at.topic]
		if !okStart || !okEnd || !okID || start.Err != nil || end.Err != nil {
			return nil, fmt.Errorf("bounds of %s/%d are unknown: %w", at.topic, at.id, errors.Join(start.Err, end.Err, errUnlisted))
		}
		out[at] = bounds{id, start.Offset, end.Offset}
	}
	return out, nil
}

var errUnlisted = errors.New("the broker does not list them")
