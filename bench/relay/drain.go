package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/topic"
)

// drained is what it took to drain a backlog.
type drained struct {
	perSecond float64
	cpu       *float64 // seconds
	perCPU    *float64 // events per second of it
	peak      *float64 // MB
}

// drain starts a relay on a backlog and waits until all of it is published
// and, if it marks, marked.
func (r *run) drain(ctx context.Context, b Backlog, m marking) (d drained, err error) {
	err = r.with(ctx, m, func(p *child.Process) error {
		began, cost, err := r.begun(ctx, p)
		if err != nil {
			return err
		}
		err = r.finish(ctx, p, b, m)
		took, after := time.Since(began), p.Usage()
		if err != nil {
			return err
		}
		n := float64(b.Events)
		d.perSecond = n / took.Seconds()
		if cost.Known && after.Known {
			d.cpu, d.peak = pointer(after.CPU-cost.CPU), pointer(after.Peak)
			if *d.cpu > 0 {
				d.perCPU = pointer(n / *d.cpu)
			}
		}
		return r.confirmed(ctx, p, b)
	})
	return d, err
}

// begun waits until the relay is at it: its slot is open or, where it has none,
// the first marks are there. It gives the time and what the relay had cost when
// they were not there yet.
func (r *run) begun(ctx context.Context, p *child.Process) (at time.Time, cost child.Usage, err error) {
	if r.mode.slot {
		err = r.outbox.reading(ctx, p)
		return time.Now(), p.Usage(), err
	}
	err = await(ctx, p, 2*time.Millisecond, func(ctx context.Context) (bool, error) {
		now, used := time.Now(), p.Usage()
		n, err := r.outbox.Marked(ctx)
		if n == 0 || at.IsZero() {
			at, cost = now, used
		}
		return n > 0, err
	})
	return at, cost, err
}

// finish waits until all of b is marked or, where nothing is marked, in the
// log.
func (r *run) finish(ctx context.Context, p *child.Process, b Backlog, m marking) error {
	if m == marks && r.mode.table {
		return r.toldHow(ctx, b, r.allMarked(ctx, p, b))
	}
	return r.allPublished(ctx, p, b)
}

// allMarked looks for the marks of each writer's last event until they are
// there, and only then counts all: counting takes the server's time, and there
// are but two processors or so.
func (r *run) allMarked(ctx context.Context, p *child.Process, b Backlog) error {
	last := false
	return await(ctx, p, 5*time.Millisecond, func(ctx context.Context) (_ bool, err error) {
		if !last {
			err := r.engines.DB.QueryRow(ctx, `SELECT count(DISTINCT id) = $2 FROM waybill.outbox_published WHERE id = ANY ($1)`,
				b.last, len(b.last)).Scan(&last)
			if err != nil || !last {
				return false, err
			}
		}
		n, err := r.outbox.Marked(ctx)
		return n >= b.Events, err
	})
}

func (r *run) allPublished(ctx context.Context, p *child.Process, b Backlog) error {
	return await(ctx, p, 5*time.Millisecond, func(ctx context.Context) (bool, error) {
		n, err := topic.Size(ctx, r.client, b.Topic)
		return n >= b.Events, err
	})
}

// toldHow adds how far the relay came to the error that says it did not arrive.
func (r *run) toldHow(ctx context.Context, b Backlog, err error) error {
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	n, cerr := r.outbox.Marked(ctx)
	if cerr != nil {
		return err
	}
	return fmt.Errorf("%d of %d events are marked: %w", n, b.Events, err)
}

func pointer[T any](v T) *T { return &v }
