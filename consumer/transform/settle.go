package transform

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// settle decides on what failed, and returns what is to be committed: of each
// partition what comes before the first that is not done.
func (s *session) settle(ctx context.Context, batch []*item) (ready []*item) {
	if ctx.Err() != nil { // what failed now may have been cut short
		for _, it := range batch {
			if it.state == failed {
				it.state = waiting
			}
		}
	}
	ends := map[place]bool{}
	for _, it := range batch {
		if ends[it.place()] {
			continue
		}
		if it.state == done {
			s.overrule(ctx, it)
		}
		if it.state == failed {
			s.failed(ctx, it)
		}
		if it.state != done {
			ends[it.place()] = true
			continue
		}
		ready = append(ready, it)
	}
	return ready
}

// overrule fails an item whose outputs the broker did not take at the last try.
func (s *session) overrule(ctx context.Context, it *item) {
	h := s.holds[it.place()]
	if h == nil || h.offset != it.rec.Offset || h.refused == nil {
		return
	}
	s.failedWith(ctx, it, consumer.Permanent(h.refused))
}

func (s *session) failed(ctx context.Context, it *item) {
	if !s.cfg.Infrastructure(it.err) {
		s.failedWith(ctx, it, it.err)
		return
	}
	h := s.holdOf(it)
	s.outage(ctx, it.err)
	s.holdBack(it.place(), h, backoff(outagePause, outageMax, h.outages))
	h.outages++
}

// failedWith counts a failure and does what the policy says.
func (s *session) failedWith(ctx context.Context, it *item, err error) {
	h := s.holdOf(it)
	h.attempts++
	v := s.cfg.Policy.Judge(err, h.attempts, s.cfg.Retry.rule())
	s.meter.failures.WithLabelValues(s.meter.group, v.Class).Inc()
	log := s.log.With("topic", it.rec.Topic, "partition", it.rec.Partition, "offset", it.rec.Offset,
		"event", it.env.ID, "class", v.Class, "attempts", h.attempts, "error", err)
	switch {
	case v.Again:
		it.state = failed
		log.WarnContext(ctx, "event failed, its partition waits for it", "wait", v.Wait)
		s.holdBack(it.place(), h, v.Wait)
	case v.Stop:
		it.state = failed
		log.ErrorContext(ctx, "partition stopped: its policy says so. Mend the cause, then start this member again")
		h.stopped = true
		s.holdBack(it.place(), h, 0)
	case v.Drop:
		log.WarnContext(ctx, "event dropped: its policy says so")
		it.becomes(dropped, nil)
	default:
		log.ErrorContext(ctx, "event is dead: its copy goes to the dead letter topic", "copy", consumer.DeadTopic(it.rec.Topic, s.cfg.Group))
		it.becomes(dead, []*kgo.Record{s.letter(it, h, v.Class, err)})
	}
}

// letter is the copy of a dead record. Made again it has the same id.
func (s *session) letter(it *item, h *hold, class string, err error) *kgo.Record {
	return consumer.DeadLetter{
		ID: event.DerivedID(it.env.ID, "dlq."+s.cfg.Group, 0), Group: s.cfg.Group, Record: it.rec, Type: it.env.Type,
		Reason: err, Class: class, Attempts: h.attempts, First: h.first, Last: time.Now(),
	}.Copy(h.size)
}

// rule is Retry as a rule.
func (r Retry) rule() consumer.Rule {
	return consumer.When("other", nil).Try(r.Attempts, consumer.Between(r.Pause, r.PauseMax))
}
