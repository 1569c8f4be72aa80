package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxRequestBytes bounds a request: brokers refuse what is too large for them
// by closing the connection.
const maxRequestBytes = 8 << 20

// answerTimeout bounds the wait for a broker that has the request.
const answerTimeout = 30 * time.Second

// request is batches of different partitions on their way to one broker.
type request[T any] struct {
	broker  int32
	bytes   int
	batches []*Batch[T]
}

func (p *Producer[T]) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// dispatch sends what is ready.
func (p *Producer[T]) dispatch() {
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		}
		requests, refused := p.collect()
		for _, r := range requests {
			p.work.Go(func() { p.send(r) })
		}
		for _, b := range refused {
			p.work.Go(func() { p.refuse(b, b.refused) })
		}
	}
}

// collect takes the first batch of every partition that is ready and whose
// broker has room.
func (p *Producer[T]) collect() (requests []*request[T], refused []*Batch[T]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var open map[int32]*request[T]
	kept := p.ready[:0]
	for _, q := range p.ready {
		b := q.queue[0]
		switch {
		case b.refused != nil:
			refused = append(refused, b)
		case p.requests[q.leader] >= p.cfg.MaxRequests && open[q.leader] == nil,
			open[q.leader] != nil && open[q.leader].bytes+len(b.buf) > maxRequestBytes:
			kept = append(kept, q)
			continue
		default:
			r := open[q.leader]
			if r == nil {
				if open == nil {
					open = map[int32]*request[T]{}
				}
				r = &request[T]{broker: q.leader}
				open[q.leader] = r
				p.requests[q.leader]++
				requests = append(requests, r)
			}
			r.batches = append(r.batches, b)
			r.bytes += len(b.buf)
		}
		b.sealed = true
		q.flying, q.inReady = true, false
	}
	clear(p.ready[len(kept):])
	p.ready = kept
	return requests, refused
}

// send sends one request and deals with the answer.
func (p *Producer[T]) send(r *request[T]) {
	errs := make([]error, len(r.batches))
	err := p.number(r.batches)
	if err == nil {
		err = p.join(r.batches, errs)
	}
	if err != nil && p.broken(err) {
		p.fail(err)
	}
	if err == nil {
		err = p.exchange(r, errs)
	}
	p.mu.Lock()
	p.requests[r.broker]--
	p.mu.Unlock()
	lost := map[*Topic[T]]bool{} // leaders to look for, after the rest: no other batch waits for that
	for i, b := range r.batches {
		var look bool
		if err != nil {
			look = p.settle(b, err, false)
		} else {
			look = p.settle(b, errs[i], true)
		}
		if look {
			lost[b.Partition.Topic] = true
		}
	}
	p.signal()
	for t := range lost {
		p.refresh(t)
	}
}

// number gives the batches identity and sequence numbers.
func (p *Producer[T]) number(batches []*Batch[T]) error {
	for _, b := range batches {
		if b.sent { // the broker may have it: only the same numbers are safe
			continue
		}
		q := b.Partition
		if err := p.identify(q); err != nil {
			return err
		}
		b.id, b.first, b.sent = q.id, q.next, true
		q.next = int32((int64(q.next) + int64(len(b.Tags))) & 0x7fffffff)
		b.seal(p.cfg.TransactionalID != "")
	}
	return nil
}

// identify gives q, whose first batch flies, the common identity, or one of its
// own after its sequence was broken.
func (p *Producer[T]) identify(q *Partition[T]) error {
	if q.id != noIdentity {
		return nil
	}
	p.mu.Lock()
	id := p.id
	p.mu.Unlock()
	if id == noIdentity || q.own {
		var err error
		if id, err = p.newIdentity(p.ctx); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == noIdentity {
		p.id = id
	}
	q.id, q.next, q.own = id, 0, false
	return nil
}

// exchange puts the broker's word on each batch in errs.
func (p *Producer[T]) exchange(r *request[T], errs []error) error {
	req := kmsg.NewPtrProduceRequest()
	req.Acks = -1
	if p.cfg.TransactionalID != "" {
		req.TransactionID = &p.cfg.TransactionalID
	}
	req.TimeoutMillis = int32(answerTimeout.Milliseconds())
	for i, b := range r.batches {
		if errs[i] == nil {
			addTo(req, b)
		}
	}
	if len(req.Topics) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, answerTimeout+5*time.Second)
	defer cancel()
	answer, err := p.client.Broker(int(r.broker)).Request(ctx, req)
	if err != nil {
		for _, b := range r.batches {
			b.unsure = true
		}
		return err
	}
	resp, ok := answer.(*kmsg.ProduceResponse)
	if !ok {
		return fmt.Errorf("unexpected answer %T", answer)
	}
	for i, b := range r.batches {
		if errs[i] == nil {
			errs[i] = read(resp, b)
			b.unsure = b.unsure || maybeTaken(errs[i])
		}
	}
	return nil
}

func addTo[T any](req *kmsg.ProduceRequest, b *Batch[T]) {
	t := b.Partition.Topic
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = b.Partition.Index, b.buf
	for i := range req.Topics {
		if req.Topics[i].Topic == t.Name {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
			return
		}
	}
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = t.Name, t.currentID() // newer brokers know it by its id
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
}

func (t *Topic[T]) currentID() [16]byte {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.id
}

var errNoAnswer = errors.New("the broker's answer leaves the partition out")

// read finds b in the answer.
func read[T any](resp *kmsg.ProduceResponse, b *Batch[T]) error {
	q := b.Partition
	id := q.Topic.currentID()
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic != q.Topic.Name && (t.Topic != "" || t.TopicID != id) {
			continue
		}
		for j := range t.Partitions {
			if a := &t.Partitions[j]; a.Partition == q.Index {
				b.Base = a.BaseOffset
				return answerError(a)
			}
		}
	}
	return errNoAnswer
}

func answerError(a *kmsg.ProduceResponseTopicPartition) error {
	err := kerr.ErrorForCode(a.ErrorCode)
	if err != nil && a.ErrorMessage != nil && *a.ErrorMessage != "" {
		return fmt.Errorf("%w (%s)", err, *a.ErrorMessage)
	}
	return err
}
