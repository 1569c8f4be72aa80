package transform

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// shift is one batch's handlers at work.
type shift struct {
	*session
	began time.Time

	mu     sync.Mutex
	over   bool            // what comes now comes too late
	failed map[place]int64 // where partitions do not get past
	made   int             // bytes
}

var seed = maphash.MakeSeed()

// handle runs handlers of those of a batch that were not handled yet: of one key
// one after another, and none behind one that failed.
func (s *session) handle(ctx context.Context, batch []*item) {
	lanes := make([][]*item, s.cfg.Workers)
	for _, it := range batch {
		if it.state != done {
			n := (maphash.Bytes(seed, it.rec.Key) + uint64(it.rec.Partition)) % uint64(len(lanes))
			it.state = waiting
			lanes[n] = append(lanes[n], it)
		}
	}
	h := &shift{session: s, began: time.Now(), failed: map[place]int64{}}
	late, cancel := linger(ctx, s.cfg.Drain, s.cfg.MaxBatchTime+s.cfg.Timeout)
	defer cancel()
	var workers sync.WaitGroup
	for _, lane := range lanes {
		if len(lane) > 0 {
			workers.Go(func() {
				for _, it := range lane {
					switch h.begin(ctx, it) {
					case start:
						h.one(late, it)
					case end:
						return
					case pass:
					}
				}
			})
		}
	}
	finished := make(chan struct{})
	go func() { workers.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-late.Done(): // a handler that heeds its context is about to return
		patience := time.NewTimer(time.Second)
		defer patience.Stop()
		select {
		case <-finished:
		case <-patience.C:
		}
	}
	h.close(batch)
}

// order is what a worker does with its next item.
type order int

const (
	start order = iota
	pass        // it waits behind one that failed
	end         // nothing more is begun
)

// begin tells whether an item may be begun. A batch that has taken its time, or
// made as much as it may, ends before the next.
func (h *shift) begin(ctx context.Context, it *item) order {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, fails := h.failed[it.place()]
	switch {
	case ctx.Err() != nil, h.over, time.Since(h.began) >= h.cfg.MaxBatchTime, h.made >= h.cfg.MaxBatchBytes:
		return end
	case fails && at < it.rec.Offset:
		return pass
	}
	it.state = running
	return start
}

var errGone = errors.New("handler ended its goroutine")

func (h *shift) one(ctx context.Context, it *item) {
	ctx, cancel := context.WithTimeout(event.WithCause(ctx, &it.env), h.cfg.Timeout)
	defer cancel()
	var out []*kgo.Record
	err := errGone // unless it returns
	defer func() {
		if v := recover(); v != nil {
			err = &consumer.PanicError{Value: v, Stack: debug.Stack()}
		}
		h.end(it, out, err)
	}()
	if err = it.fault; err == nil {
		err = errGone
		out, err = it.route.handle(ctx, it)
	}
}

// end notes what came of an item, unless that is no longer asked for.
func (h *shift) end(it *item, out []*kgo.Record, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
	case err != nil:
		h.fail(it, err)
	default:
		it.becomes(transformed, out)
		h.made += it.made
	}
}

func (h *shift) fail(it *item, err error) {
	it.state, it.err = failed, err
	if at, ok := h.failed[it.place()]; !ok || it.rec.Offset < at {
		h.failed[it.place()] = it.rec.Offset
	}
}

// close takes no more results. A handler that is still at work has failed; at
// shutdown it has not, for it was cut short.
func (h *shift) close(batch []*item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, it := range batch {
		if it.state == running {
			h.fail(it, fmt.Errorf("handler did not return when its time was over: %w", context.DeadlineExceeded))
		}
	}
}
