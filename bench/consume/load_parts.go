package consume

import (
	"context"
	"errors"
	"sync"
	"time"
)

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
