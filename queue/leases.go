package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// leases keeps the leases of a worker's messages alive, all in one statement.
type leases struct {
	q     *Queue
	lease time.Duration
	log   *slog.Logger

	mu   sync.Mutex
	held map[string]*lease
}

// lease is one message at work. ctx ends when it is lost.
type lease struct {
	ctx     context.Context //nolint:containedctx // the handler's, which lives as long as the lease
	all     *leases
	receipt string
	until   time.Time // by our clock
	lose    context.CancelFunc
	lost    bool
}

func newLeases(q *Queue, d time.Duration, log *slog.Logger) *leases {
	return &leases{q: q, lease: d, log: log, held: map[string]*lease{}}
}

func (l *leases) hold(ctx context.Context, m Delivery) *lease {
	h := &lease{all: l, receipt: m.Receipt, until: time.Now().Add(l.lease)}
	h.ctx, h.lose = context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[m.Receipt] = h
	return h
}

func (h *lease) letGo() {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	delete(h.all.held, h.receipt)
	h.lose()
}

func (h *lease) isLost() bool {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	return h.lost
}

// keep extends all leases each third of their time, until ctx ends.
func (l *leases) keep(ctx context.Context) {
	for pause(ctx, l.lease/3) {
		l.extend(ctx)
	}
}

func (l *leases) extend(ctx context.Context) {
	receipts := l.due()
	if len(receipts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.lease/3)
	defer cancel()
	asked := time.Now()
	err := l.q.Extend(ctx, l.q.db, l.lease, receipts...)
	var refused *ReceiptError
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.As(err, &refused):
		for _, r := range refused.Receipts {
			l.loseLocked(r)
		}
	case err != nil:
		l.log.WarnContext(ctx, "extend leases; tried again", "queue", l.q.cfg.Name, "error", err)
		l.expireLocked(receipts)
		return
	}
	for _, r := range receipts {
		if h := l.held[r]; h != nil {
			h.until = asked.Add(l.lease)
		}
	}
}

// due are the messages that have been at work for a third of a lease. One that
// is done at this moment is refused, which is no loss: it is not held any more.
func (l *leases) due() (receipts []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, h := range l.held {
		if !h.lost && time.Until(h.until) < l.lease*2/3+time.Second/4 {
			receipts = append(receipts, r)
		}
	}
	return receipts
}

// expireLocked ends handlers whose lease is over while the database could not be
// asked.
func (l *leases) expireLocked(receipts []string) {
	for _, r := range receipts {
		if h := l.held[r]; h != nil && time.Now().After(h.until) {
			l.loseLocked(r)
		}
	}
}

func (l *leases) loseLocked(receipt string) {
	if h := l.held[receipt]; h != nil {
		h.lost = true
		h.lose()
	}
}
