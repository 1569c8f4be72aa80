package consume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// send publishes until as many as are due are out, in ticks of 10 ms. due says
// how many are, some time after it began, and whether that is all.
func (l *load) send(ctx context.Context, due func(since time.Duration) (total int64, last bool)) error {
	cl, err := l.engines.Broker.Client(kgo.ProducerLinger(5 * time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, stop := context.WithCancelCause(event.WithTenant(ctx, "bench"))
	defer stop(nil)
	note := make([]byte, noteBytes)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began, n := time.Now(), l.published.Load()
	for last := false; !last; {
		var total int64
		for total, last = due(time.Since(began)); n < total; n++ {
			rec, err := record(ctx, l.schemaID, step{account(n), n/keys + 1, note})
			if err != nil {
				return err
			}
			cl.Produce(ctx, rec, func(_ *kgo.Record, err error) {
				if err != nil {
					stop(fmt.Errorf("publish: %w", err))
					return
				}
				l.published.Add(1)
			})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := cl.Flush(ctx); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// parts run side by side until their context ends. One that ends before ends
// the run.
type parts struct {
	ctx   context.Context //nolint:containedctx // of the parts, which begin one after the other
	all   sync.WaitGroup
	ended chan error
	mu    sync.Mutex
	errs  []error
}

func newParts(ctx context.Context) *parts { return &parts{ctx: ctx, ended: make(chan error, 8)} }

func (p *parts) run(fn func(context.Context) error) {
	p.all.Go(func() {
		err := fn(p.ctx)
		if p.ctx.Err() == nil {
			p.ended <- errors.Join(errors.New("a part of the run ended by itself"), err)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errs = append(p.errs, err)
	})
}

func (p *parts) wait() error {
	p.all.Wait()
	return errors.Join(p.errs...)
}

// until waits for cond while all parts run.
func (p *parts) until(ctx context.Context, cond func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case err := <-p.ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
