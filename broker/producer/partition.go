package producer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Partition is one partition's queue.
type Partition[T any] struct {
	Topic *Topic[T]
	Index int32
	p     *Producer[T]

	// All under p.mu:
	leader   int32 // broker; -1 if there is none just now
	queue    []*Batch[T]
	flying   bool // the first of queue is under way, or being reported
	inReady  bool
	timer    *time.Timer // it waits to be sent again
	failures int         // in a row
	since    time.Time   // the first of them
	unknown  time.Time   // since when the broker knows no such topic; zero if it does
	stopped  bool        // the first of queue was refused
	closed   bool        // takes no records
	limit    int         // of a batch, in bytes
	id       identity
	own      bool  // its next identity is no other partition's
	next     int32 // sequence number
}

// ErrClosed tells that a partition takes no records.
var ErrClosed = errors.New("partition is closed")

// ErrStopped tells that a partition's first record is refused.
var ErrStopped = errors.New("partition has stopped at a refused record")

// TooLargeError refuses a record unsent.
type TooLargeError struct {
	Size, Limit int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("record of %d bytes, the limit is %d", e.Size, e.Limit)
}

// Append queues a record. It waits for nothing. It tells false, and does
// nothing, if the partition is closed.
func (q *Partition[T]) Append(r *Record, tag T) bool {
	q.p.mu.Lock()
	if q.closed {
		q.p.mu.Unlock()
		return false
	}
	b, delta := q.last()
	size := bodySize(r, delta)
	if b == nil || !b.fits(size+varintSize(size), q.limit) && delta > 0 {
		b, delta = q.open(), 0
		size = bodySize(r, 0)
	}
	if size > q.p.cfg.MaxRecordBytes {
		q.reject(b, &TooLargeError{Size: size, Limit: q.p.cfg.MaxRecordBytes}, tag)
	} else {
		b.add(r, delta, size, tag)
	}
	wake := q.makeReady()
	q.p.mu.Unlock()
	if wake {
		q.p.signal()
	}
	return true
}

// Reject queues the refusal of a record that cannot be made: its partition
// stops at it, when all before it are through. It tells false, and does
// nothing, if the partition is closed.
func (q *Partition[T]) Reject(why error, tag T) bool {
	q.p.mu.Lock()
	if q.closed {
		q.p.mu.Unlock()
		return false
	}
	q.reject(q.open(), why, tag)
	wake := q.makeReady()
	q.p.mu.Unlock()
	if wake {
		q.p.signal()
	}
	return true
}

// last is the batch that records join, and how many it has.
func (q *Partition[T]) last() (*Batch[T], int) {
	if n := len(q.queue); n > 0 && !q.queue[n-1].sealed {
		return q.queue[n-1], len(q.queue[n-1].Tags)
	}
	return nil, 0
}

func (q *Partition[T]) open() *Batch[T] {
	b := q.p.pool.Get().(*Batch[T])
	b.Partition = q
	q.queue = append(q.queue, b)
	return b
}

// reject puts in a record's place that it is refused: it has to wait for its
// turn, or the order would not hold.
func (q *Partition[T]) reject(b *Batch[T], why error, tag T) {
	if len(b.Tags) > 0 {
		b = q.open()
	}
	b.Tags = append(b.Tags, tag)
	b.sealed, b.refused = true, why
}

// makeReady puts q where the dispatcher looks.
func (q *Partition[T]) makeReady() bool {
	if q.flying || q.inReady || q.stopped || q.timer != nil || len(q.queue) == 0 {
		return false
	}
	q.inReady = true
	q.p.ready = append(q.p.ready, q)
	return true
}

// settled tells that nothing will come of waiting for q. What flies may be out of
// the queue, and not yet reported.
func (q *Partition[T]) settled() bool {
	return !q.flying && (len(q.queue) == 0 || q.stopped)
}

// Drain waits until the broker has taken all that is queued. It ends early
// with ErrStopped.
func (q *Partition[T]) Drain(ctx context.Context) error {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if err := q.p.wait(ctx, q.settled); err != nil {
		return err
	}
	if q.stopped {
		return ErrStopped
	}
	return nil
}

// Close makes the partition take no more records. What is queued goes on.
func (q *Partition[T]) Close() {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	q.closed = true
}

// Open undoes Close.
func (q *Partition[T]) Open() {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	q.closed = false
}

// Retry sends the refused record of a stopped partition again, and what is
// behind it.
func (q *Partition[T]) Retry() {
	q.p.mu.Lock()
	if q.stopped { // what the topic takes may have changed
		q.stopped, q.limit = false, q.p.cfg.MaxBatchBytes
	}
	wake := q.makeReady()
	q.p.mu.Unlock()
	if wake {
		q.p.signal()
	}
}

// Skip drops the refused record of a stopped partition if it is the one, sends
// what is behind it, and gives the record's tag. It tells false, and does
// nothing, if there is no such record.
func (q *Partition[T]) Skip(is func(T) bool) (tag T, ok bool) {
	q.p.mu.Lock()
	if !q.stopped || len(q.queue) == 0 || !is(q.queue[0].Tags[0]) {
		q.p.mu.Unlock()
		return tag, false
	}
	b := q.queue[0]
	for len(b.Tags) > 1 { // the whole topic was refused
		q.cut(b)
	}
	tag = b.Tags[0]
	q.pop()
	q.p.moved.Broadcast()
	q.p.mu.Unlock()
	q.Retry()
	return tag, true
}

// First is the tag of the first record that is queued, if there is one.
func (q *Partition[T]) First() (tag T, ok bool) {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if len(q.queue) == 0 {
		return tag, false
	}
	return q.queue[0].Tags[0], true
}

// Discard empties the queue of a stopped partition, which then is as new, and
// gives the tags of what was in it.
func (q *Partition[T]) Discard() []T {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	if !q.stopped {
		return nil
	}
	var tags []T
	for _, b := range q.queue {
		tags = append(tags, b.Tags...)
	}
	clear(q.queue)
	q.queue, q.stopped, q.limit = q.queue[:0], false, q.p.cfg.MaxBatchBytes
	q.p.moved.Broadcast()
	return tags
}

// cut moves half of the first batch to a second one.
func (q *Partition[T]) cut(b *Batch[T]) {
	next := q.p.pool.Get().(*Batch[T])
	next.Partition = q
	b.split(next)
	q.queue = append(q.queue, nil)
	copy(q.queue[2:], q.queue[1:])
	q.queue[1] = next
}

// pop removes the first batch.
func (q *Partition[T]) pop() {
	n := copy(q.queue, q.queue[1:])
	q.queue[n] = nil
	q.queue = q.queue[:n]
}

// unnumber takes the numbers back of a batch that the broker refused, for the
// next one to have. If it may be in the log after all, as when an answer was
// lost before, no other may have them: the broker would take that for the same
// batch and acknowledge what it does not write.
func (q *Partition[T]) unnumber(b *Batch[T]) {
	switch {
	case !b.sent:
	case b.unsure:
		q.id, q.own = noIdentity, true
	default:
		q.next = b.first
	}
	b.sent, b.unsure = false, false
}

// retryLater keeps q out of the dispatcher's sight for a while, longer each
// time.
func (q *Partition[T]) retryLater() {
	if q.failures == 0 {
		q.since = time.Now()
	}
	q.failures++
	wait := min(20*time.Millisecond<<min(q.failures, 8), time.Second)
	q.timer = time.AfterFunc(wait, func() {
		q.p.mu.Lock()
		q.timer = nil
		wake := q.makeReady()
		q.p.mu.Unlock()
		if wake {
			q.p.signal()
		}
	})
}

func (q *Partition[T]) stopTimer() {
	if q.timer != nil {
		q.timer.Stop()
	}
}

// Closed tells whether the partition takes no records.
func (q *Partition[T]) Closed() bool {
	q.p.mu.Lock()
	defer q.p.mu.Unlock()
	return q.closed
}
