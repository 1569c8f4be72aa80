package transform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// gather is what the next transaction may have: records of partitions that wait
// for nothing, each partition's in order. It polls only when there are none, and
// returns none when ctx ends.
func (s *session) gather(ctx context.Context) ([]*item, error) {
	for ctx.Err() == nil {
		if s.rebalanced.Swap(false) {
			// The next transaction would be aborted for partitions that it does
			// not have: better none is begun.
			if err := s.goBack(ctx); err != nil {
				return nil, err
			}
		}
		s.release(time.Now())
		if batch := s.ready(); len(batch) > 0 {
			return batch, nil
		}
		s.tx.AllowRebalance()
		if !s.poll(ctx) {
			return nil, nil
		}
	}
	return nil, nil
}

// goBack has the client begin again where the group's commits are.
func (s *session) goBack(ctx context.Context) error {
	late, cancel := linger(ctx, s.cfg.Drain, s.endWithin())
	defer cancel()
	s.forget()
	if _, err := s.tx.End(late, kgo.TryAbort); err != nil {
		return fmt.Errorf("go back to what is committed: %w", err)
	}
	return nil
}

// ready takes from partitions that are not held, in no order among them.
func (s *session) ready() (batch []*item) {
	bytes := 0
	for at, items := range s.pending {
		if s.holds[at].waits() {
			continue
		}
		for _, it := range items {
			if len(batch) >= s.cfg.MaxBatch || bytes >= s.cfg.MaxBatchBytes {
				return batch
			}
			batch = append(batch, it)
			bytes += size(it.rec)
		}
	}
	return batch
}

// poll waits for records, or until a partition is to be tried again. It is false
// when the client is closed.
func (s *session) poll(ctx context.Context) bool {
	if wake := s.wake(); !wake.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, wake)
		defer cancel()
	}
	fetches := s.tx.PollRecords(ctx, s.cfg.MaxBatch)
	if fetches.IsClientClosed() {
		return false
	}
	s.complain(ctx, fetches)
	fetches.EachRecord(func(rec *kgo.Record) {
		it := s.read(rec)
		s.pending[it.place()] = append(s.pending[it.place()], it)
	})
	return true
}

// complain tells what the broker answered instead of records, each thing once a
// minute. The client tries again by itself.
func (s *session) complain(ctx context.Context, fetches kgo.Fetches) {
	fetches.EachError(func(topic string, id int32, err error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return
		}
		what := topic + ": " + err.Error()
		if time.Since(s.told[what]) < time.Minute {
			return
		}
		if len(s.told) > 100 {
			clear(s.told)
		}
		s.told[what] = time.Now()
		if topic == "" { // the client's word for the group itself
			s.log.ErrorContext(ctx, "no partitions assigned", "error", err)
			return
		}
		s.log.ErrorContext(ctx, "partition cannot be read", "topic", topic, "partition", id, "error", err)
	})
}
