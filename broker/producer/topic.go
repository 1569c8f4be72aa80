package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topic is a topic's partitions.
type Topic[T any] struct {
	Name string
	p    *Producer[T]

	// Under p.mu:
	id         [16]byte
	partitions []*Partition[T]
	refreshing bool
}

// refreshEvery is how often partitions added to a topic are looked for.
const refreshEvery = time.Minute

// Topic finds a topic's partitions, asking the broker the first time. It keeps
// asking while no broker answers; a topic that is unknown for longer than
// Config.UnknownTopic ends it with kerr.UnknownTopicOrPartition.
func (p *Producer[T]) Topic(ctx context.Context, name string) (*Topic[T], error) {
	p.mu.Lock()
	t := p.topics[name]
	p.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t = &Topic[T]{Name: name, p: p}
	began := time.Now()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := p.ask(ctx, t)
		switch {
		case err == nil:
			return p.keep(t), nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case p.ctx.Err() != nil:
			return nil, p.ctx.Err()
		case isUnknown(err) && time.Since(began) > p.cfg.UnknownTopic,
			!isUnknown(err) && isBrokers(err) && !kerr.IsRetriable(err):
			return nil, fmt.Errorf("topic %q: %w", name, err)
		}
		p.log.WarnContext(ctx, "no partitions to publish to yet", "topic", name, "error", err)
		pause(ctx, wait)
	}
}

// keep makes t the topic of its name, unless there is one already.
func (p *Producer[T]) keep(t *Topic[T]) *Topic[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there := p.topics[t.Name]; there != nil {
		return there
	}
	p.topics[t.Name] = t
	return t
}

// Count is how many partitions the topic has.
func (t *Topic[T]) Count() int {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return len(t.partitions)
}

// Partition is one of the topic's partitions, nil if there is no such.
func (t *Topic[T]) Partition(i int) *Partition[T] {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	if i < 0 || i >= len(t.partitions) {
		return nil
	}
	return t.partitions[i]
}

// keyed is how Kafka's own clients choose a key's partition.
var keyed = kgo.StickyKeyPartitioner(nil).ForTopic("")

// For is the partition of a key.
func (t *Topic[T]) For(key []byte) *Partition[T] {
	r := kgo.Record{Key: key}
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	return t.partitions[keyed.Partition(&r, len(t.partitions))]
}

// ask brings t up to date.
func (p *Producer[T]) ask(ctx context.Context, t *Topic[T]) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	one := kmsg.NewMetadataRequestTopic()
	one.Topic = kmsg.StringPtr(t.Name)
	req.Topics = append(req.Topics, one)
	resp, err := req.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 {
		return fmt.Errorf("the broker told of %d topics when asked for one", len(resp.Topics))
	}
	found := &resp.Topics[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		return err
	}
	if len(found.Partitions) == 0 {
		return kerr.UnknownTopicOrPartition
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.id = found.TopicID
	// A topic never has fewer; one made anew with fewer keeps the rest unsent,
	// and loudly so.
	for len(t.partitions) < len(found.Partitions) {
		t.partitions = append(t.partitions, &Partition[T]{
			Topic: t, Index: int32(len(t.partitions)), p: p, leader: -1, limit: p.cfg.MaxBatchBytes, id: noIdentity,
		})
	}
	for _, f := range found.Partitions {
		if int(f.Partition) < len(t.partitions) {
			t.partitions[f.Partition].leader = f.Leader
		}
	}
	return nil
}

// refresh asks again, once at a time.
func (p *Producer[T]) refresh(t *Topic[T]) {
	p.mu.Lock()
	busy := t.refreshing
	t.refreshing = true
	p.mu.Unlock()
	if busy {
		return
	}
	if err := p.ask(p.ctx, t); err != nil && p.ctx.Err() == nil {
		p.log.WarnContext(p.ctx, "look for the leaders of a topic's partitions", "topic", t.Name, "error", err)
	}
	p.mu.Lock()
	t.refreshing = false
	p.mu.Unlock()
}

func (p *Producer[T]) refreshNowAndThen() {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range p.known() {
			p.refresh(t)
		}
	}
}

func (p *Producer[T]) known() []*Topic[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*Topic[T], 0, len(p.topics))
	for _, t := range p.topics {
		out = append(out, t)
	}
	return out
}

func isUnknown(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// isBrokers tells an answer from the lack of one.
func isBrokers(err error) bool {
	var e *kerr.Error
	return errors.As(err, &e)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
