package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/waybillhq/waybill/broker/producer"
	"github.com/waybillhq/waybill/outbox/message"
)

// passLimit bounds how many kept-back events of a partition are published at a
// time: the reader does nothing else meanwhile.
const passLimit = 20_000

// lookForTopic bounds the look for a topic that was not there, which the other
// topics' events wait for.
const lookForTopic = 300 * time.Millisecond

// due tells, at most once a second, that stopped partitions are to be looked
// at.
func (r *reader) due() bool {
	if r.s.stopped.count() == 0 || time.Since(r.looked) < time.Second {
		return false
	}
	r.looked = time.Now()
	return true
}

// mend tries the stopped partitions whose time has come, or whose refused
// event an operator gave up.
func (r *reader) mend(ctx context.Context) error {
	for at, due := range r.s.stopped.candidates(time.Now()) {
		skip, err := r.s.skipAsked(ctx, r.s.stopped.event(at))
		if err != nil {
			return err
		}
		if !due && !skip {
			continue
		}
		if r.s.cfg.tables() {
			err = r.mendFromTable(ctx, at, skip)
		} else {
			err = r.mendInPlace(ctx, at, skip)
		}
		if err != nil {
			return fmt.Errorf("mend %s: %w", at, err)
		}
	}
	return nil
}

// mendInPlace sends the refused record again, which still heads its queue.
func (r *reader) mendInPlace(ctx context.Context, at place, skip bool) error {
	t, err := r.s.producer.Topic(ctx, at.topic)
	if err != nil {
		return err
	}
	q := t.Partition(int(at.partition))
	if skip {
		event := r.s.stopped.event(at)
		if skipped, ok := q.Skip(func(t tag) bool { return t.id == event }); ok {
			r.s.ledger.drop(skipped)
			r.s.tellSkip(ctx, at, skipped.id)
		}
	} else {
		q.Retry()
	}
	// Refused again, it is noted as it was the first time. Otherwise the queue
	// goes on, and may never be empty under load.
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if errors.Is(q.Drain(wait), producer.ErrStopped) || ctx.Err() != nil {
		return ctx.Err()
	}
	return r.s.forgetStop(ctx, at)
}

// pass publishes events that a stopped partition kept back.
type pass struct {
	*reader
	at    place
	topic *producer.Topic[tag]
	n     uint64 // its transaction in the ledger, from the first event on
	count int
	more  bool // there is more than it takes
	over  bool // one was refused again
}

// mendFromTable publishes what a stopped partition kept back, first its head
// alone. While there is more than a pass takes, the partition stays closed to
// the stream, whose events would come before their turn.
func (r *reader) mendFromTable(ctx context.Context, at place, skip bool) error {
	if skip {
		if err := r.s.noteSkip(ctx, at, r.s.stopped.event(at)); err != nil {
			return err
		}
	}
	look, cancel := context.WithTimeout(ctx, lookForTopic)
	t, err := r.s.producer.Topic(look, at.topic)
	cancel()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.s.ledger.stop(stop{place: at, event: r.s.stopped.event(at), err: kerr.UnknownTopicOrPartition})
		return nil
	}
	// What went out before the stop must be marked, or it would be taken for
	// kept back.
	if err := r.s.ledger.waitMarked(ctx); err != nil {
		return err
	}
	floor, err := r.s.floor(ctx)
	if err != nil {
		return err
	}
	p := &pass{reader: r, at: at, topic: t}
	p.open(true)
	err = r.unmarked(ctx, floor, at.topic, p.publish)
	if p.count > 0 {
		r.s.ledger.commit(p.n, 0)
	}
	if err != nil {
		return err
	}
	if err := r.s.ledger.waitMarked(ctx); err != nil {
		return err
	}
	switch {
	case p.over || p.refusedSince():
		return nil
	case p.more:
		p.open(false)
		r.s.stopped.hurry(at)
		return nil
	}
	if at.partition == wholeTopic {
		r.topics[at.topic] = &topic{t}
	}
	return r.s.forgetStop(ctx, at)
}

// publish takes one row of the topic's.
func (p *pass) publish(row *row, from origin) (more bool, err error) {
	q := p.topic.For(row[message.Subject])
	if p.at.partition != wholeTopic && q.Index != p.at.partition {
		return true, nil
	}
	if p.count == passLimit {
		p.more = true
		return false, nil
	}
	if p.count == 0 {
		p.n = p.s.ledger.begin(from.upTo, time.Time{})
	}
	p.count++
	rec, err := p.record(row)
	if errors.Is(err, errUnfit) {
		p.over = true
		return false, p.unfit(row, q, err)
	}
	if err != nil {
		return false, err
	}
	p.resent.add(row.id(), from.upTo)
	if err := p.enqueue(p.n, q, rec, row.id()); err != nil {
		return false, err
	}
	if p.count > 1 {
		return true, nil
	}
	err = q.Drain(p.ctx)
	if errors.Is(err, producer.ErrStopped) || q.Closed() {
		p.over = true
		return false, nil
	}
	return true, err
}

// refusedSince tells whether the broker refused one of the pass's events.
func (p *pass) refusedSince() bool {
	if p.at.partition == wholeTopic { // its partitions have stopped by themselves
		return false
	}
	return p.topic.Partition(int(p.at.partition)).Closed()
}

// open lets the partition take records, or not.
func (p *pass) open(yes bool) {
	if p.at.partition == wholeTopic {
		return // the topic as such is closed to the stream
	}
	if q := p.topic.Partition(int(p.at.partition)); yes {
		q.Open()
	} else {
		q.Close()
	}
}
