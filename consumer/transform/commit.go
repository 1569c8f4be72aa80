package transform

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/consumer"
)

// endWithin is how long a transaction may take to end: longer, and the broker has
// aborted it.
func (s *session) endWithin() time.Duration { return s.cfg.TransactionTimeout + sessionTimeout }

// commit writes what was made of items and commits it with their offsets, or
// nothing of it. An error is the end of the session.
func (s *session) commit(ctx context.Context, items []*item) error {
	late, cancel := linger(ctx, s.cfg.Drain, s.endWithin())
	defer cancel()
	if err := s.declare(late, items); err != nil {
		return s.wait(ctx, err)
	}
	began := time.Now()
	if err := s.tx.Begin(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	at, err := s.produce(late, items)
	left := s.after(items)
	committed, endErr := s.tx.End(kgo.PreTxnCommitFnContext(late, func(req *kmsg.TxnOffsetCommitRequest) error {
		left.adjust(req)
		return nil
	}), kgo.TransactionEndTry(err == nil))
	switch {
	case endErr != nil:
		return fmt.Errorf("end a transaction: %w", errors.Join(endErr, err))
	case committed:
		s.pass(items, left)
		s.meter.committed(items)
		s.meter.duration.Observe(time.Since(began).Seconds())
		return nil
	}
	s.forget()
	s.meter.ended("aborted")
	switch {
	case err == nil: // a rebalance came in between
		return nil
	case at != nil && refusedForGood(err):
		return s.refuse(ctx, at, err)
	}
	return s.wait(ctx, err)
}

// wait lets some time pass, in which rebalances may come: what is missing may be
// there then.
func (s *session) wait(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller sees that ctx is over, and what was not committed is read again
	}
	s.outage(ctx, err)
	s.tx.AllowRebalance()
	s.fails++
	pause(ctx, backoff(outagePause, outageMax, s.fails))
	return nil
}

// produce writes the outputs and waits until the broker has them. Of what it did
// not take it returns the first.
func (s *session) produce(ctx context.Context, items []*item) (at *item, err error) {
	var mu sync.Mutex
	for _, it := range items {
		for _, rec := range it.out {
			s.tx.Produce(ctx, rec, func(_ *kgo.Record, failed error) {
				mu.Lock()
				defer mu.Unlock()
				// One that was refused for itself is to blame for what failed
				// beside it.
				if failed != nil && (err == nil || refusedForGood(failed) && !refusedForGood(err)) {
					at, err = it, failed
				}
			})
		}
	}
	if flushed := s.tx.Client().Flush(ctx); flushed != nil {
		return nil, flushed
	}
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		err = fmt.Errorf("write what was made of %s/%d@%d: %w", at.rec.Topic, at.rec.Partition, at.rec.Offset, err)
	}
	return at, err
}

// refusedForGood tells that the broker will not take a record at another time
// either.
func refusedForGood(err error) bool {
	for _, e := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.CorruptMessage} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refuse keeps in mind, until the record comes again, that what is made of it is
// not taken; of a dead letter, that a smaller one must do.
func (s *session) refuse(ctx context.Context, it *item, err error) error {
	h := s.holdOf(it)
	switch {
	case it.what != dead:
		h.refused = err
	case h.size < consumer.Sizes-1:
		h.size++
	default:
		return s.wait(ctx, err)
	}
	return nil
}

// declare makes the dead letter topics that are written to and not there.
func (s *session) declare(ctx context.Context, items []*item) error {
	for _, it := range items {
		if it.what != dead {
			continue
		}
		t := consumer.DeclaredDeadTopic(it.rec.Topic, s.cfg.Group)
		if _, ok := s.declared[t.Name]; ok {
			continue
		}
		err := broker.Declare(ctx, s.tx.Client(), broker.Capabilities{}, t)
		var drift *broker.DriftError
		switch {
		case errors.As(err, &drift):
			s.log.WarnContext(ctx, "the dead letter topic differs from its declaration", "error", err)
		case err != nil:
			return fmt.Errorf("declare %s: %w", t.Name, err)
		}
		s.declared[t.Name] = struct{}{}
	}
	return nil
}
