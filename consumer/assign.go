package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

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
		if p.fault != faultNone {
			offsets[p.topic][p.id] = kgo.NewOffset().AtEnd() // of which nothing is fetched
		}
	}
	return offsets, nil
}

// prepareWithin bounds it where a server takes requests and answers none.
const prepareWithin = 30 * time.Second

// prepare makes partitions of places, from the broker's and the database's
// knowledge of them.
func (s *session) prepare(ctx context.Context, places []place) ([]*partition, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareWithin)
	defer cancel()
	there, lacking, err := s.bounds(ctx, places)
	if err != nil {
		return nil, err
	}
	if s.cfg.From == Now {
		if err := s.settleNow(ctx, there, lacking); err != nil {
			return nil, err
		}
	}
	// First of all that is read for good: what an owner before us still writes
	// is refused from here on.
	owner, err := s.takeOver(ctx, places)
	if err != nil {
		return nil, err
	}
	counted, err := s.countedSince(ctx, places)
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
		p, settled := s.open(ctx, at, there[at], owner[at], saved)
		if settled != nil {
			settle = append(settle, *settled)
		}
		p.counted = counted[at]
		parts[at] = p
		out = append(out, p)
	}
	for _, k := range keys {
		parts[k.place].parked[k.key] = struct{}{}
	}
	if len(settle) == 0 {
		return out, nil
	}
	if ours, err := s.save(ctx, settle); err != nil || len(ours) < len(settle) {
		return nil, errors.Join(err, errFenced)
	}
	return out, nil
}

// open decides where a partition begins, or that it must not. The position
// after records that have expired is to be saved at once: it is told once.
func (s *session) open(ctx context.Context, at place, b bounds, owner int64, saved map[place]position) (*partition, *position) {
	var was *position
	if w, ok := saved[at]; ok {
		was = &w
	}
	next, fault := b.begin(was)
	p := newPartition(s.ctx, at, b.topicID, owner, next) //nolint:contextcheck // a partition lives on after its assignment
	if was != nil && was.topicID == b.topicID {
		p.reached = was.reached
	}
	switch {
	case fault == faultNone:
		return p, nil
	case stops(fault):
		p.tracker.next, p.saved = was.next, was.next
		s.stop(ctx, p, fault, *was, b)
		return p, nil
	}
	s.meter.faults.WithLabelValues(s.cfg.Group, at.topic, fault).Inc()
	s.log.ErrorContext(ctx, "unread records are gone: they expired before the group came to them", "topic", at.topic,
		"partition", at.id, "saved", was.next, "log_start", b.start, "records", b.start-was.next)
	s.record(ctx, "records_expired_unread", at, fmt.Sprintf("%d records of %s/%d from offset %d were gone before group %s came to them: give it more members, or the topic a longer retention",
		b.start-was.next, at.topic, at.id, was.next, s.cfg.Group))
	return p, &position{at, owner, b.topicID, -1, next, max(p.reached, next)}
}

// own makes partitions current. One that we still have comes from an
// assignment that was broken off before it was read.
func (s *session) own(taken []*partition) {
	places := make([]place, 0, len(taken))
	s.mu.Lock()
	for _, p := range taken {
		places = append(places, p.place)
		if old := s.parts[p.place]; old != nil {
			s.close(old)
		}
		s.parts[p.place] = p
	}
	s.countParked()
	s.mu.Unlock()
	s.throttle(places...)
}

// bounds is what the broker has of places, and of the other partitions of
// their topics as far as they are not lacking.
func (s *session) bounds(ctx context.Context, places []place) (there map[place]bounds, lacking map[string]error, err error) {
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
		return nil, nil, fmt.Errorf("ids of topics: %w", err)
	}
	adm := kadm.NewClient(s.cl)
	starts, err := adm.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, nil, fmt.Errorf("starts of topics: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, nil, fmt.Errorf("ends of topics: %w", err)
	}
	there, lacking = make(map[place]bounds, len(places)), map[string]error{}
	ends.Each(func(end kadm.ListedOffset) {
		start, okStart := starts.Lookup(end.Topic, end.Partition)
		id, okID := ids[end.Topic]
		if okStart && okID && start.Err == nil && end.Err == nil {
			there[place{end.Topic, end.Partition}] = bounds{id, start.Offset, end.Offset}
			return
		}
		lacking[end.Topic] = fmt.Errorf("bounds of %s/%d are unknown: %w", end.Topic, end.Partition, errors.Join(start.Err, end.Err, errUnlisted))
	})
	for _, at := range places {
		if _, ok := there[at]; !ok {
			return nil, nil, errors.Join(fmt.Errorf("bounds of %s/%d: %w", at.topic, at.id, errUnlisted), lacking[at.topic])
		}
	}
	return there, lacking, nil
}

var errUnlisted = errors.New("the broker does not list them")
