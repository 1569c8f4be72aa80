package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ReceiveOptions tune one Receive; the zero value asks for one message and does
// not wait.
type ReceiveOptions struct {
	Max   int           // messages, 1 if zero, at most [MaxBatch]
	Wait  time.Duration // for the first one, if there is none
	Lease time.Duration // instead of the queue's
}

// lookAgain is how often who waits looks without being told.
const lookAgain = 250 * time.Millisecond

// leaseWithin bounds one statement. It is not the caller's time: a lease that
// is given up half way would keep its messages from everyone until it ends.
const leaseWithin = 30 * time.Second

// Receive leases messages. It returns as soon as there are any, with none when
// opts.Wait is over or ctx ends. What it returns is the caller's until the
// lease ends: to be acknowledged, given back or extended.
func (q *Queue) Receive(ctx context.Context, opts ReceiveOptions) ([]Delivery, error) {
	if opts.Max == 0 {
		opts.Max = 1
	}
	err := withinNumber("number of messages", int64(opts.Max), 1, MaxBatch)
	if opts.Lease != 0 {
		err = errors.Join(err, within("lease", opts.Lease, minLease, maxLease))
	}
	if err != nil {
		return nil, err
	}
	// Asked for before the first look: what is sent in between is told.
	told, forget := q.cfg.Signals.wait(q)
	defer forget()
	end := time.NewTimer(opts.Wait)
	defer end.Stop()
	for first := true; ; first = false {
		got, err := q.look1(ctx, opts)
		if len(got) > 0 || err != nil || opts.Wait <= 0 {
			return got, err
		}
		if first {
			if err := q.exists(ctx); err != nil {
				return nil, err
			}
		}
		again := time.NewTimer(lookAgain)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, nil
		case <-end.C:
			again.Stop()
			return nil, nil
		case <-told:
		case <-again.C:
		}
		again.Stop()
	}
}

// look1 is one look, with upkeep if it is time for it.
func (q *Queue) look1(ctx context.Context, opts ReceiveOptions) ([]Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseWithin)
	defer cancel()
	got, err := q.take(ctx, opts.Max, opts.Lease)
	if err != nil {
		return nil, err
	}
	moved, err := q.upkeep(ctx, len(got) < opts.Max)
	switch {
	case len(got) > 0:
		return got, nil // an upkeep that fails is the next look's to tell
	case err != nil:
		return nil, err
	case moved:
		return q.takeAll(ctx, opts.Max, opts.Lease)
	}
	if opts.Wait <= 0 {
		return nil, q.exists(ctx)
	}
	return nil, nil
}

// exists tells an empty queue from none.
func (q *Queue) exists(ctx context.Context) error {
	var there bool
	err := q.db.QueryRow(ctx, `SELECT `+queueNumber+` IS NOT NULL`, q.cfg.Tenant, q.cfg.Name).Scan(&there)
	if err != nil {
		return fmt.Errorf("look for queue %s: %w", q.cfg.Name, err)
	}
	if !there {
		return q.unknown()
	}
	return nil
}
