package relay

import (
	"context"
	"errors"
	"time"

	"github.com/waybillhq/waybill/bench/child"
)

// warmUp has the first relay make its slot and looks what one costs that has
// nothing to do. The slots beside it are made after its own, so that they need
// not read what came before.
func (r *run) warmUp(ctx context.Context) error {
	return r.with(ctx, marks, func(p *child.Process) error {
		if err := errors.Join(r.outbox.reading(ctx, p), r.outbox.complete(ctx, p)); err != nil {
			return err
		}
		b, err := r.outbox.Fill(ctx, warmTopic, 1000)
		if err != nil {
			return err
		}
		r.written = append(r.written, b)
		if err := r.finish(ctx, p, b, marks); err != nil {
			return err
		}
		if rss := idle(ctx, p); rss > 0 {
			r.res.RSS = pointer(rss)
		}
		if r.beside, err = r.newBeside(ctx); err != nil {
			r.note("no limit: %v", err)
		}
		return r.confirmed(ctx, p, b)
	})
}

// idle waits until p uses no processor for half a second, or for three seconds,
// and gives its resident memory in MB.
func idle(ctx context.Context, p *child.Process) float64 {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	u := p.Usage()
	for range 6 {
		before := u.CPU
		for range 5 {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		if u = p.Usage(); u.CPU == before {
			break
		}
	}
	return u.RSS
}
