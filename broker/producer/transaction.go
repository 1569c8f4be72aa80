package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// TransactionOptions are what the client of a producer with
// Config.TransactionalID needs: it speaks the transactions of Kafka 3.8, which
// later brokers know too. In newer ones a produce request joins its partition
// to the transaction by itself, and each end of a transaction gives a new epoch.
func TransactionOptions() []kgo.Opt { return []kgo.Opt{kgo.MaxVersions(kversion.V3_8_0())} }

// transactionTimeout is after how long the coordinator aborts a transaction by
// itself. Until then readers of committed records see nothing behind it.
const transactionTimeout = 30 * time.Second

// Begin makes the transactional id this producer's own: a transaction that
// another left open is aborted, and the other can commit none any more. It
// must come before the first record.
func (p *Producer[T]) Begin(ctx context.Context) error {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = &p.cfg.TransactionalID
		req.TransactionTimeoutMillis = int32(transactionTimeout.Milliseconds())
		req.ProducerID, req.ProducerEpoch = -1, -1
		resp, err := req.RequestWith(ctx, p.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		switch {
		case err == nil:
			p.mu.Lock()
			p.id = identity{resp.ProducerID, resp.ProducerEpoch}
			p.mu.Unlock()
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !kerr.IsRetriable(err) && !errors.Is(err, kerr.ConcurrentTransactions): // as when the one before is being aborted
			return fmt.Errorf("begin as transactional producer %q: %w", p.cfg.TransactionalID, err)
		}
		pause(ctx, wait)
	}
}

// Commit commits all that was acknowledged since the last one. Nothing may be
// appended while it runs, and nothing may be queued but behind a refused
// record. After an error it is unknown whether the transaction committed, and
// the producer is of no more use.
func (p *Producer[T]) Commit(ctx context.Context) error {
	p.mu.Lock()
	id, joined := p.id, len(p.joined) > 0
	p.mu.Unlock()
	if !joined {
		return nil
	}
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.Commit = p.cfg.TransactionalID, true
		req.ProducerID, req.ProducerEpoch = id.producer, id.epoch
		resp, err := req.RequestWith(ctx, p.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		switch {
		case err == nil:
			p.mu.Lock()
			clear(p.joined)
			p.mu.Unlock()
			return nil
		case !errors.Is(err, kerr.ConcurrentTransactions) && !errors.Is(err, kerr.CoordinatorLoadInProgress):
			return fmt.Errorf("commit: %w", err)
		}
		pause(ctx, wait)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// join tells the coordinator of partitions the transaction did not have yet. It
// puts in errs what keeps a batch's partition out of it.
func (p *Producer[T]) join(batches []*Batch[T], errs []error) error {
	if p.cfg.TransactionalID == "" {
		return nil
	}
	for {
		p.mu.Lock()
		id := p.id
		byTopic := map[string][]int32{}
		for i, b := range batches {
			if q := b.Partition; errs[i] == nil && !p.joined[q] {
				byTopic[q.Topic.Name] = append(byTopic[q.Topic.Name], q.Index)
			}
		}
		p.mu.Unlock()
		if len(byTopic) == 0 {
			return nil
		}
		resp, err := p.askToJoin(id, byTopic)
		if err != nil {
			return fmt.Errorf("join a transaction: %w", err)
		}
		if err := p.noteJoined(resp, batches, errs); err != nil {
			return fmt.Errorf("join a transaction: %w", err)
		}
	}
}

// noteJoined reads an answer. Where one partition may not join, the coordinator
// lets none, and the others have to be asked for again.
func (p *Producer[T]) noteJoined(resp *kmsg.AddPartitionsToTxnResponse, batches []*Batch[T], errs []error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	news := false
	for i, b := range batches {
		q := b.Partition
		if errs[i] != nil || p.joined[q] {
			continue
		}
		switch err := joinError(resp, q.Topic.Name, q.Index); {
		case err == nil:
			p.joined[q], news = true, true
		case errors.Is(err, kerr.OperationNotAttempted):
		case p.broken(err):
			return err
		default:
			errs[i], news = err, true
		}
	}
	if !news {
		return kerr.OperationNotAttempted
	}
	return nil
}

func (p *Producer[T]) askToJoin(id identity, byTopic map[string][]int32) (*kmsg.AddPartitionsToTxnResponse, error) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.cfg.TransactionalID, id.producer, id.epoch
	for name, partitions := range byTopic {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic, t.Partitions = name, partitions
		req.Topics = append(req.Topics, t)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		resp, err := req.RequestWith(p.ctx, p.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil || !ending(resp) || p.ctx.Err() != nil {
			return resp, err
		}
		pause(p.ctx, wait)
	}
}

// ending tells that the end of the transaction before is still on its way to
// the partitions.
func ending(resp *kmsg.AddPartitionsToTxnResponse) bool {
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if resp.Topics[i].Partitions[j].ErrorCode == kerr.ConcurrentTransactions.Code {
				return true
			}
		}
	}
	return false
}

// joinError is the coordinator's word on a partition.
func joinError(resp *kmsg.AddPartitionsToTxnResponse, topic string, partition int32) error {
	for i := range resp.Topics {
		if resp.Topics[i].Topic != topic {
			continue
		}
		for j := range resp.Topics[i].Partitions {
			if a := &resp.Topics[i].Partitions[j]; a.Partition == partition {
				return kerr.ErrorForCode(a.ErrorCode)
			}
		}
	}
	return errNoAnswer
}

// broken tells the end of a transactional producer: another has its id, or the
// coordinator gave the transaction up.
func (p *Producer[T]) broken(err error) bool {
	if p.cfg.TransactionalID == "" {
		return false
	}
	for _, e := range []error{kerr.InvalidTxnState, kerr.TransactionAbortable, kerr.TransactionalIDAuthorizationFailed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return forgotten(err)
}
