package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// Handler works on a message. Its effects in tx and the acknowledgement commit
// together if it returns nil. An error undoes them, and the message comes again
// after a pause, until it has been delivered as often as its queue allows.
//
// ctx ends when the lease is lost, so that what cannot be committed any more is
// not gone on with, and when the worker is to stop at once.
type Handler func(ctx context.Context, tx pgx.Tx, m Delivery) error

// WorkerConfig is what may be set; its zero value works.
type WorkerConfig struct {
	Workers int           // messages at a time, twice the processors if zero
	Lease   time.Duration // the queue's if zero; kept alive while a handler runs
	// Retry is the pause after a failure, by how often the message was
	// delivered; a second, doubled each time up to a minute, if nil.
	Retry func(deliveries int) time.Duration
	// Drain is how long handlers may go on when ctx ends, 10 s if zero.
	Drain  time.Duration
	Logger *slog.Logger // slog.Default() if nil
}

func (c WorkerConfig) withDefaults() WorkerConfig {
	if c.Workers == 0 {
		c.Workers = 2 * runtime.NumCPU()
	}
	if c.Retry == nil {
		c.Retry = func(n int) time.Duration { return min(time.Second<<min(max(n-1, 0), 6), time.Minute) }
	}
	if c.Drain == 0 {
		c.Drain = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// worker is a Work under way.
type worker struct {
	q      *Queue
	handle Handler
	cfg    WorkerConfig
	leases *leases
	hand   *hand
	slots  chan struct{} // one for each message at work
}

// Work has the queue's messages worked on until ctx ends, and returns when all
// it started has stopped. It takes no more messages than it works on, and of
// quick ones as many more as it will have done within a fiftieth of a second,
// so that workers of several processes have equal shares. What then waits longer
// than a second is given back. The pool should have a connection for each of
// cfg.Workers, and two.
//
// An outage of the database is waited for; what it interrupts is undone and
// comes again.
func Work(ctx context.Context, q *Queue, handle Handler, cfg WorkerConfig) error {
	w, err := newWorker(ctx, q, handle, cfg)
	if err != nil {
		return err
	}
	w.run(ctx)
	return nil
}

func newWorker(ctx context.Context, q *Queue, handle Handler, cfg WorkerConfig) (*worker, error) {
	cfg = cfg.withDefaults()
	if err := withinNumber("number of workers", int64(cfg.Workers), 1, MaxBatch); err != nil {
		return nil, err
	}
	lease, err := q.leaseTime(ctx, cfg.Lease)
	if err != nil {
		return nil, err
	}
	return &worker{
		q: q, handle: handle, cfg: cfg, leases: newLeases(q, lease, cfg.Logger),
		hand: newHand(cfg.Workers), slots: make(chan struct{}, cfg.Workers),
	}, nil
}

func (w *worker) run(ctx context.Context) {
	// Handlers outlive ctx by the time they have to finish.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	late := context.AfterFunc(ctx, func() { time.AfterFunc(w.cfg.Drain, stop) })
	defer late()
	var all, keeping sync.WaitGroup
	keeping.Go(func() { w.leases.keep(work) })
	w.receive(ctx, work, &all)
	all.Wait()
	stop()
	keeping.Wait()
}

// leaseTime is how long leases are: as asked for, or as the queue has it.
func (q *Queue) leaseTime(ctx context.Context, asked time.Duration) (time.Duration, error) {
	if asked != 0 {
		return asked, within("lease", asked, minLease, maxLease)
	}
	var ms int64
	err := q.db.QueryRow(ctx, `SELECT lease_ms FROM waybill.queues WHERE tenant = $1 AND name = $2`, q.cfg.Tenant, q.cfg.Name).Scan(&ms)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, q.unknown()
	}
	if err != nil {
		return 0, fmt.Errorf("read settings of queue %s: %w", q.cfg.Name, err)
	}
	return milliseconds(ms), nil
}

// receive takes as many messages as there is room for.
func (w *worker) receive(ctx, work context.Context, all *sync.WaitGroup) {
	failing := false
	for {
		room := w.hand.room(ctx)
		if room == 0 {
			return
		}
		got, err := w.q.Receive(ctx, ReceiveOptions{Max: room, Wait: 5 * time.Second, Lease: w.leases.lease})
		if err != nil {
			if ctx.Err() == nil && !failing {
				w.cfg.Logger.WarnContext(ctx, "receive; tried again until it succeeds", "queue", w.q.cfg.Name, "error", err)
			}
			failing = true
			if !pause(ctx, time.Second) {
				return
			}
			continue
		}
		failing = false
		if ctx.Err() != nil {
			w.release(work, got...)
			return
		}
		w.hand.take(len(got))
		for _, m := range got {
			held := w.leases.hold(work, m)
			all.Go(func() {
				defer held.letGo()
				w.hand.put(w.await(ctx, work, held, m))
			})
		}
	}
}

// await does a message when it is its turn, and tells how long that took. One
// that did not have its turn in time, or when the worker is to stop, is given
// back.
func (w *worker) await(ctx, work context.Context, held *lease, m Delivery) time.Duration {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case w.slots <- struct{}{}:
	case <-late.C:
		w.hand.forget()
		w.release(work, m)
		return 0
	case <-ctx.Done():
		w.release(work, m)
		return 0
	}
	defer func() { <-w.slots }()
	begun := time.Now()
	w.do(held, m) //nolint:contextcheck // its context is the lease's
	return time.Since(begun)
}

// release gives messages back that nobody works on. If that fails their leases end
// by themselves. The end of handlers is not its end: many may be in hand then.
func (w *worker) release(ctx context.Context, got ...Delivery) {
	receipts := make([]string, len(got))
	for i, m := range got {
		receipts[i] = m.Receipt
	}
	_, _ = bounded(context.WithoutCancel(ctx), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.q.Release(ctx, w.q.db, receipts...)
	})
}

// do has one message handled, and gives it back if that failed.
func (w *worker) do(held *lease, m Delivery) {
	err := w.once(held.ctx, m)
	if err == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(held.ctx), 5*time.Second)
	defer cancel()
	log := w.cfg.Logger.With("queue", w.q.cfg.Name, "message", m.ID, "delivery", m.Deliveries, "error", err)
	switch {
	case errors.Is(err, ErrReceipt), held.isLost():
		log.WarnContext(ctx, "the lease was lost; what the handler did is undone")
		return
	case held.ctx.Err() != nil, pg.Infrastructure(err):
		// Not the message's fault. If this fails too, the lease ends by itself.
		_ = w.q.Release(ctx, w.q.db, m.Receipt)
		return
	}
	log.WarnContext(ctx, "message failed")
	if back := w.q.Nack(ctx, w.q.db, w.cfg.Retry(m.Deliveries), err.Error(), m.Receipt); back != nil {
		log.WarnContext(ctx, "not given back; it comes again when its lease ends", "cause", back)
	}
}

// once is one transaction: the handler's effects and the acknowledgement.
func (w *worker) once(ctx context.Context, m Delivery) error {
	return pgx.BeginFunc(ctx, w.q.db, func(tx pgx.Tx) error {
		if err := safely(func() error { return w.handle(ctx, tx, m) }); err != nil {
			return err
		}
		return w.q.Ack(ctx, tx, m.Receipt)
	})
}

// safely makes a panic the message's failure.
func safely(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("handler panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return do()
}
