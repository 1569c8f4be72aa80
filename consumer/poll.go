package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// poll feeds lanes until ctx ends. Rebalances happen between two polls, or
// while there is no space, never between a record's poll and its lane. The
// client keeps up the membership by itself.
func (s *session) poll(ctx context.Context) {
	complaints := map[string]time.Time{}
	for ctx.Err() == nil {
		n := s.space(ctx)
		if n == 0 {
			return
		}
		fetches := s.cl.PollRecords(ctx, min(n, pollAtOnce, s.cfg.share()))
		if fetches.IsClientClosed() {
			s.cl.AllowRebalance()
			return
		}
		if ctx.Err() == nil {
			s.complain(complaints, fetches)
			s.take(s.sort(fetches, s.sift(ctx, fetches)))
		}
		s.cl.AllowRebalance()
		s.let(ctx, s.cfg.Gather)
	}
}

// let has records come together for d before they are asked for again. The
// client has one more fetch in hand by then and no other: so few requests reach
// the broker, too.
func (s *session) let(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// sort reads the records' envelopes.
func (s *session) sort(fetches kgo.Fetches, wanted map[string]bool) (recs []*kgo.Record, messages []*message) {
	fetches.EachRecord(func(rec *kgo.Record) {
		m, skip := s.unwanted(rec, wanted)
		if !skip {
			m = s.read(rec)
		}
		if m == nil {
			s.meter.count(otherType, skipped, 1)
		}
		recs, messages = append(recs, rec), append(messages, m)
	})
	return recs, messages
}

// complain tells what the broker answered instead of records, each thing once
// a minute. The client tries again by itself.
func (s *session) complain(told map[string]time.Time, fetches kgo.Fetches) {
	fetches.EachError(func(topic string, id int32, err error) {
		what := topic + ": " + err.Error()
		if last, ok := told[what]; ok && time.Since(last) < time.Minute {
			return
		}
		if len(told) > 100 {
			clear(told)
		}
		told[what] = time.Now()
		if topic == "" { // the client's word for the group itself
			s.log.Error("no partitions assigned", "error", err)
			return
		}
		s.log.Error("partition cannot be read", "topic", topic, "partition", id, "error", err)
	})
}
