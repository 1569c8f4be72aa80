package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
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

// mendWait bounds each wait while a stopped partition is looked at, for the same
// reason. What is not through by then is looked at again the next time.
const mendWait = 500 * time.Millisecond

// due tells, at most once a second, that stopped partitions are to be looked
// at.
func (r *reader) due() bool {
	if !r.s.cfg.keeps() || r.s.stopped.count() == 0 || time.Since(r.looked) < time.Second {
		return false
	}
	r.looked = time.Now()
	return true
}

// mend tries the stopped partitions whose time has come, or whose refused
// event an operator gave up, and publishes from the table what they kept back.
func (r *reader) mend(ctx context.Context) error {
	if err := r.unseen.look(ctx, r.s.db); err != nil {
		return err
	}
	for at, due := range r.s.stopped.candidates(time.Now()) {
		event := r.s.stopped.state(at).event
		skip, err := r.s.skipAsked(ctx, event)
		if err != nil {
			return err
		}
		if skip {
			if first, err := r.s.noteSkip(ctx, event); err != nil {
				return err
			} else if first {
				r.s.tellSkip(ctx, at, event)
			}
		}
		if !due && !skip {
			continue
		}
		if err := r.mendPlace(ctx, at); err != nil {
			return fmt.Errorf("mend %s: %w", at, err)
		}
	}
	return nil
}

func (r *reader) mendPlace(ctx context.Context, at place) error {
	st := r.s.stopped.state(at)
	t := r.s.topicNow(ctx, at.topic)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t == nil:
		return r.waitForTopic(ctx, at, st.event)
	}
	p := &pass{reader: r, topic: t, event: st.event}
	if at.partition != wholeTopic {
		p.q = t.Partition(int(at.partition))
	}
	// Keys move when a topic gets more partitions, or fewer, and what they kept
	// back moves with them.
	p.all = p.q == nil || st.partitions != t.Count()
	for _, step := range []func(context.Context) (bool, error){p.settled, p.head, p.visible, p.rest} {
		if ok, err := step(ctx); err != nil || !ok {
			p.open(false)
			if !p.refused {
				r.s.stopped.later(at)
			}
			return err
		}
	}
	if p.more {
		p.open(false)
		r.s.stopped.hurry(at)
		return nil
	}
	if at.partition == wholeTopic {
		r.topics[at.topic] = &topic{t}
	}
	return r.s.forgetStop(ctx, at, st.event)
}

// waitForTopic has the topic, which is still not there, stand at the first event
// it keeps back, which is another once that one was given up. With none left
// there is nothing to wait for: the next event looks for the topic again.
func (r *reader) waitForTopic(ctx context.Context, at place, event uuid.UUID) error {
	first := event
	open := false
	look := func(row *row, _ origin) (bool, error) {
		first, open = row.id(), true
		return false, nil
	}
	if err := r.unmarkedEvent(ctx, event, look); err != nil {
		return err
	}
	if !open {
		if ok, err := within(ctx, mendWait, func(ctx context.Context) error { return r.unseen.wait(ctx, r.s.db) }); err != nil || !ok {
			return err
		}
		floor, err := r.s.floor(ctx)
		if err == nil {
			err = r.unmarked(ctx, floor, at.topic, look)
		}
		if err != nil {
			return err
		}
	}
	if !open {
		delete(r.topics, at.topic)
		return r.s.forgetStop(ctx, at, event)
	}
	r.s.ledger.stop(stop{place: at, event: first, err: kerr.UnknownTopicOrPartition})
	return nil
}

// pass publishes events that a stopped partition kept back: first the refused
// one alone, so that nothing need be read while it is refused. Where there is
// more than a pass takes, or it takes too long, the partition stays closed to
// the stream, whose events would come before their turn.
type pass struct {
	*reader
	topic   *producer.Topic[tag]
	q       *producer.Partition[tag] // nil: a topic as a whole, or a partition that is gone
	all     bool                     // of all the topic's partitions that are not stopped
	event   uuid.UUID
	n       uint64 // transaction in the ledger
	count   int    // events of it
	more    bool   // there is more than it takes
	refused bool   // the broker refuses one again
}

// settled waits until what went out before is marked: it would be taken for
// kept back.
func (p *pass) settled(ctx context.Context) (bool, error) {
	return within(ctx, mendWait, func(ctx context.Context) error {
		for i := range p.topic.Count() {
			q := p.topic.Partition(i)
			if q != p.q && !p.all {
				continue
			}
			if err := q.Drain(ctx); err != nil && !errors.Is(err, producer.ErrStopped) {
				return err
			}
		}
		if p.s.once != nil { // it is marked once its transaction has ended
			return p.s.ledger.waitMarked(ctx)
		}
		return p.s.ledger.waitAcked(ctx)
	})
}

// head publishes the refused event, if it has no mark by now.
func (p *pass) head(ctx context.Context) (bool, error) {
	p.open(true)
	if p.q == nil {
		return true, nil
	}
	err := p.unmarkedEvent(ctx, p.event, func(row *row, from origin) (bool, error) {
		return false, p.publishIn(p.topic.For(row[message.Subject]), row, from)
	})
	return p.through(ctx, mendWait, err)
}

// rest publishes what stands behind it.
func (p *pass) rest(ctx context.Context) (bool, error) {
	floor, err := p.s.floor(ctx)
	if err != nil {
		return false, err
	}
	return p.through(ctx, 10*mendWait, p.unmarked(ctx, floor, p.topic.Name, p.take))
}

// take takes one row of the topic's.
func (p *pass) take(row *row, from origin) (more bool, err error) {
	q := p.topic.For(row[message.Subject])
	if q != p.q && (!p.all || q.Closed()) {
		return true, nil
	}
	if p.count == passLimit {
		p.more = true
		return false, nil
	}
	err = p.publishIn(q, row, from)
	return p.all || !q.Closed(), err
}

// publishIn publishes a row in the pass' transaction.
func (p *pass) publishIn(q *producer.Partition[tag], row *row, from origin) error {
	if p.count == 0 {
		p.n = p.s.ledger.begin(from.upTo, time.Time{})
	}
	p.count++
	taken, err := p.offer(p.n, q, row, true)
	if taken && p.s.stream != nil {
		p.resent.add(row.id(), from.upTo)
	}
	return err
}

// through waits until what was published in the pass' transaction is marked, and
// tells whether all of it is. err is what ended the publishing.
func (p *pass) through(ctx context.Context, wait time.Duration, err error) (bool, error) {
	if p.count > 0 {
		p.s.ledger.commit(p.n, 0)
		p.count = 0
		if err == nil {
			var ok bool
			if ok, err = within(ctx, wait, func(ctx context.Context) error { return p.s.ledger.waitCommit(ctx, p.n) }); !ok {
				return false, err
			}
		}
	}
	p.refused = p.q != nil && p.q.Closed()
	return err == nil && !p.refused, err
}

// open lets the partition take records, or not. A topic that has stopped as a
// whole is closed to the stream as such.
func (p *pass) open(yes bool) {
	switch {
	case p.q == nil:
	case yes:
		p.q.Open()
	default:
		p.q.Close()
	}
}

// within tells whether wait came to an end within d. An error is one of ctx's
// or another's.
func within(ctx context.Context, d time.Duration, wait func(context.Context) error) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := wait(bounded)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}
