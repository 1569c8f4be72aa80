package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// settle deals with the broker's word on a batch, or with the lack of one. It
// tells whether the partition's leader has to be looked for.
func (p *Producer[T]) settle(b *Batch[T], err error, answered bool) (look bool) {
	q := b.Partition
	unknown := answered && q.unknownFor(isUnknown(err), p.cfg.UnknownTopic)
	switch {
	case err == nil, errors.Is(err, kerr.DuplicateSequenceNumber):
		p.acked(b)
	case p.ctx.Err() != nil: // the end
	case !answered:
		p.again(b, err)
		return true
	case p.broken(err):
		p.fail(err)
	case forgotten(err):
		b.unsure = true
		q.unnumber(b)
		p.again(b, err)
	case p.cfg.TransactionalID != "" && b.unsure && (unknown || final(err)):
		// It may be part of the transaction, and would be published again.
		p.fail(fmt.Errorf("refused after the broker may have taken it: %w", err))
	case unknown, final(err) && len(b.Tags) == 1, ofTopic(err):
		p.refuse(b, err)
	case final(err):
		p.halve(b, err)
	default:
		p.again(b, err)
		return true
	}
	return false
}

// fail tells of the end of a transactional producer.
func (p *Producer[T]) fail(err error) {
	p.cfg.Failed(err)
	p.stop()
	p.mu.Lock()
	p.moved.Broadcast()
	p.mu.Unlock()
}

// acked reports the batch before the next one may fly. It has left the queue by
// then: whoever it is reported to may release it at once, and a record that comes
// in at that moment would else join what is free for others to use.
func (p *Producer[T]) acked(b *Batch[T]) {
	q := b.Partition
	p.mu.Lock()
	q.pop()
	p.mu.Unlock()
	p.cfg.Acked(b)
	p.mu.Lock()
	q.flying, q.failures = false, 0
	wake := q.makeReady()
	if len(q.queue) == 0 {
		p.moved.Broadcast()
	}
	p.mu.Unlock()
	if wake {
		p.signal()
	}
}

// again sends the batch once more, a little later.
func (p *Producer[T]) again(b *Batch[T], err error) {
	q := b.Partition
	p.mu.Lock()
	q.flying = false
	q.retryLater()
	n, since := q.failures, q.since
	p.mu.Unlock()
	if n == 5 || n%60 == 0 { // after about a second, and then each minute
		p.log.WarnContext(p.ctx, "the broker takes nothing for this partition; trying on",
			"topic", q.Topic.Name, "partition", q.Index, "error", err, "since", since.Format(time.RFC3339))
	}
}

// halve cuts a refused batch in two, so that in the end the record at fault
// stands alone.
func (p *Producer[T]) halve(b *Batch[T], err error) {
	q := b.Partition
	p.mu.Lock()
	if errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge) {
		q.limit = max(len(b.buf)/2, 1) // what this topic takes; the next ones need not be cut
	}
	q.unnumber(b)
	q.cut(b)
	q.flying = false
	wake := q.makeReady()
	p.mu.Unlock()
	if wake {
		p.signal()
	}
}

// refuse stops the partition.
func (p *Producer[T]) refuse(b *Batch[T], err error) {
	q := b.Partition
	p.mu.Lock()
	q.unnumber(b)
	q.flying, q.stopped, q.failures = false, true, 0
	tag := b.Tags[0]
	p.moved.Broadcast()
	p.mu.Unlock()
	p.cfg.Refused(Refusal[T]{Partition: q, Tag: tag, Err: err})
}

// unknownFor notes whether the broker knows no such topic, and tells whether
// that is so for longer than d.
func (q *Partition[T]) unknownFor(now bool, d time.Duration) bool {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	switch {
	case !now:
		q.unknown = time.Time{}
	case q.unknown.IsZero():
		q.unknown = time.Now()
	}
	return now && time.Since(q.unknown) > d
}

// maybeTaken tells an answer after which the records may be in the log all the
// same.
func maybeTaken(err error) bool {
	for _, e := range []error{
		kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.KafkaStorageError, kerr.UnknownServerError, errNoAnswer,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// forgotten tells that the broker does not know our numbers any more, or never
// took what came before.
func forgotten(err error) bool {
	for _, e := range []error{
		kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerIDMapping,
		kerr.InvalidProducerEpoch, kerr.ProducerFenced,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// final tells an answer that will be the same the next time from trouble that
// passes.
func final(err error) bool {
	var e *kerr.Error
	return errors.As(err, &e) && !e.Retriable && !errors.Is(err, context.Canceled)
}

// ofTopic tells that it is no single record that is refused.
func ofTopic(err error) bool {
	for _, e := range []error{
		kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.InvalidTopicException,
		kerr.UnsupportedForMessageFormat, kerr.InvalidRequiredAcks,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
