package relay

import (
	"context"
	"time"

	"github.com/waybillhq/waybill/broker/producer"
)

// Where nothing can be found again in a table, a refused record stays at the
// head of its partition, in memory, and all behind it. The reader may be waiting
// for room there, so that somebody else has to see to it.

// mendInPlace tries held records again until ctx ends.
func (s *session) mendInPlace(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for at, due := range s.stopped.candidates(time.Now()) {
			skip, err := s.skipAsked(ctx, s.stopped.state(at).event)
			if err == nil && (due || skip) {
				err = s.tryAgain(ctx, at, skip)
			}
			if err != nil {
				return unlessDone(ctx, err)
			}
		}
	}
}

// topicNow is a topic that is there, nil if it is not.
func (s *session) topicNow(ctx context.Context, name string) *producer.Topic[tag] {
	ctx, cancel := context.WithTimeout(ctx, lookForTopic)
	defer cancel()
	t, err := s.producer.Topic(ctx, name)
	if err != nil {
		return nil
	}
	return t
}

// tryAgain sends the refused record again, or drops it.
func (s *session) tryAgain(ctx context.Context, at place, skip bool) error {
	event := s.stopped.state(at).event
	t := s.topicNow(ctx, at.topic)
	if t == nil { // the reader stands at it
		return nil
	}
	if q := t.Partition(int(at.partition)); q != nil {
		is := func(t tag) bool { return t.id == event }
		if dropped, ok := q.Skip(func(t tag) bool { return skip && is(t) }); ok {
			s.ledger.drop(dropped)
			if _, err := s.noteSkip(ctx, event); err != nil {
				return err
			}
			s.tellSkip(ctx, at, event)
		}
		q.Retry()
		// Refused again, it is noted as it was the first time. Otherwise the
		// queue goes on, and may never be empty under load.
		_, _ = within(ctx, time.Second, q.Drain)
		if first, ok := q.First(); ok && is(first) {
			return nil
		}
	}
	return s.forgetStop(ctx, at, event)
}
