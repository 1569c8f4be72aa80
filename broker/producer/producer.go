// Package producer appends records to a log in an order that holds whatever
// happens to one of them.
//
// Each partition has one batch under way at a time; what is appended meanwhile
// makes the next one, so that batches grow with the load and a lone record
// waits for nothing. Producing is idempotent: a batch whose answer was lost is
// sent again under the same sequence number.
//
// A record that the broker refuses for good stops its partition, with nothing
// behind it sent. A pipelining client has later batches of the partition under
// way by then, and the broker takes them: the refused record, sent again once
// the cause is mended, would stand behind its successors. Of a refused batch
// the records before the one at fault are appended: it is cut in halves until
// that one stands alone.
//
// With a transactional id, records are seen by readers of committed ones from
// [Producer.Commit] on, all or none.
//
// Limits: records are not compressed. A partition's throughput is a batch a
// round trip.
package producer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Config is what may be set, but for Acked and Refused, which must be.
type Config[T any] struct {
	// Acked hears of each batch the broker has taken, in order within a
	// partition, from several goroutines at once. The batch is the callee's;
	// give it back with [Producer.Release].
	Acked func(*Batch[T])
	// Refused hears that a partition has stopped. It is called from a goroutine
	// of the producer's, before which nothing else happens to the partition.
	Refused func(Refusal[T])
	// TransactionalID makes the producer a transactional one: call Begin first
	// and Commit now and then.
	TransactionalID string
	// Failed hears that a transactional producer can commit nothing any more.
	Failed func(error)

	// MaxBatchBytes bounds a batch, 1 MiB if zero. A larger record goes alone.
	MaxBatchBytes int
	// MaxRecordBytes bounds a record, 8 MiB if zero: a larger one is refused
	// unsent, since a broker would close the connection over it.
	MaxRecordBytes int
	// MaxRequests bounds the requests under way to one broker, 3 if zero. Fewer
	// make larger batches.
	MaxRequests int
	// UnknownTopic is for how long a topic may be unknown to the broker before
	// its records are refused, 10 s if zero.
	UnknownTopic time.Duration
	Logger       *slog.Logger // slog.Default if nil
}

// Refusal is a record the broker will not take.
type Refusal[T any] struct {
	Partition *Partition[T]
	Tag       T // of the record
	Err       error
}

// Producer appends records. T is what the caller wants to hear again with each
// of them. Its methods are safe for concurrent use, but records of one
// partition are appended in the order of the calls.
type Producer[T any] struct {
	client *kgo.Client
	cfg    Config[T]
	log    *slog.Logger
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{}
	pool   sync.Pool

	mu       sync.Mutex
	moved    *sync.Cond // a partition has nothing queued any more, or stopped
	topics   map[string]*Topic[T]
	ready    []*Partition[T]
	requests map[int32]int // under way, by broker
	id       identity
	joined   map[*Partition[T]]bool // to the open transaction
}

// New makes a producer that sends through client, which must ask for all
// in-sync replicas' acknowledgement, as it does by default.
func New[T any](client *kgo.Client, cfg Config[T]) *Producer[T] {
	cfg.MaxBatchBytes = orDefault(cfg.MaxBatchBytes, 1<<20)
	cfg.MaxRecordBytes = orDefault(cfg.MaxRecordBytes, 8<<20)
	cfg.MaxRequests = orDefault(cfg.MaxRequests, 3)
	cfg.UnknownTopic = orDefault(cfg.UnknownTopic, 10*time.Second)
	cfg.Logger = orDefault(cfg.Logger, slog.Default())
	p := &Producer[T]{
		client: client, cfg: cfg, log: cfg.Logger, wake: make(chan struct{}, 1),
		topics: map[string]*Topic[T]{}, requests: map[int32]int{}, id: noIdentity, joined: map[*Partition[T]]bool{},
	}
	p.moved = sync.NewCond(&p.mu)
	p.pool.New = func() any { return new(Batch[T]) }
	p.ctx, p.stop = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	p.work.Go(p.dispatch)
	p.work.Go(p.refreshNowAndThen)
	return p
}

// Close stops sending and waits until no callback runs any more. Whether the
// broker took what was under way is then unknown.
func (p *Producer[T]) Close() {
	p.stop()
	p.mu.Lock()
	for _, t := range p.topics {
		for _, q := range t.partitions {
			q.stopTimer()
		}
	}
	p.moved.Broadcast()
	p.mu.Unlock()
	p.work.Wait()
}

// Flush waits until every partition has nothing queued, or has stopped.
func (p *Producer[T]) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wait(ctx, func() bool {
		for _, t := range p.topics {
			for _, q := range t.partitions {
				if !q.settled() {
					return false
				}
			}
		}
		return true
	})
}

// wait waits, with p.mu held, until ok, ctx's end or the producer's.
func (p *Producer[T]) wait(ctx context.Context, ok func() bool) error {
	if ok() {
		return nil
	}
	// Under the lock: a broadcast between check and Wait would be lost.
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.moved.Broadcast()
	})
	defer stop()
	for !ok() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.ctx.Err(); err != nil {
			return err
		}
		p.moved.Wait()
	}
	return nil
}

// Release takes a batch back for reuse.
func (p *Producer[T]) Release(b *Batch[T]) {
	if cap(b.buf) > 2*p.cfg.MaxBatchBytes { // one large record must not keep it all
		b.buf = nil
	}
	clear(b.Tags)
	*b = Batch[T]{buf: b.buf[:0], Tags: b.Tags[:0]}
	p.pool.Put(b)
}

func orDefault[V comparable](v, def V) V {
	var zero V
	if v == zero {
		return def
	}
	return v
}
