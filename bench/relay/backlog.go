package relay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drainNoMarks measures where a relay can do without marks and its end can be
// seen.
func (r *run) drainNoMarks(ctx context.Context) error {
	switch r.cfg.Mode {
	case Poll:
		r.note("nothing without marks: a relay that polls knows by them what to publish")
		return nil
	case Message:
		r.note("messages are never marked: the figures are those without")
		return nil
	case EOS:
		r.note("nothing without marks: markers of transactions in the topic hide how many records it holds")
		return nil
	}
	d, limit, err := r.pair(ctx, noMarksTopic, noMarks)
	r.res.PerSecondNoMarks, r.res.LimitNoMarks = &d.perSecond, limit
	if limit != nil {
		r.res.RatioNoMarks = pointer(d.perSecond / *limit)
	}
	return err
}

func (r *run) drainMarks(ctx context.Context) error {
	d, limit, err := r.pair(ctx, marksTopic, marks)
	r.res.PerSecond, r.res.Limit = d.perSecond, limit
	if limit != nil {
		r.res.Ratio = pointer(d.perSecond / *limit)
	}
	r.res.CPU, r.res.PerCPUSecond, r.res.Peak = d.cpu, d.perCPU, d.peak
	return err
}

// pair writes a backlog and has it read by pg_recvlogical, by the relay, and
// by pg_recvlogical again: each alone, and a machine that is getting slower or
// faster meanwhile favours neither.
func (r *run) pair(ctx context.Context, name string, m marking) (d drained, limit *float64, err error) {
	var b Backlog
	err = r.step(ctx, fmt.Sprintf("write %d events (%s)", r.cfg.Events, name), limitFor(r.cfg.Events), func(ctx context.Context) (err error) {
		if err = errors.Join(r.clear(ctx), r.skip(ctx)); err != nil {
			return err
		}
		if b, err = r.outbox.Fill(ctx, name, r.cfg.Events); err != nil {
			return err
		}
		r.written = append(r.written, b)
		return r.engines.Checkpoint(ctx)
	})
	if err != nil {
		return d, nil, err
	}
	var theirs time.Duration
	read := func(i int) error {
		if r.beside == nil {
			return nil
		}
		return r.step(ctx, "read the WAL with pg_recvlogical", limitFor(r.cfg.Events), func(ctx context.Context) error {
			took, err := r.beside.read(ctx, r.beside.slots[i], b.end)
			theirs += took
			return err
		})
	}
	ours := func() error {
		return r.step(ctx, fmt.Sprintf("drain %d events (%s)", b.Events, name), limitFor(b.Events), func(ctx context.Context) (err error) {
			d, err = r.drain(ctx, b, m)
			return err
		})
	}
	for _, fn := range []func() error{func() error { return read(0) }, ours, func() error { return read(1) }} {
		if err := fn(); err != nil {
			return d, nil, err
		}
	}
	if theirs > 0 {
		limit = pointer(2 * float64(b.Events) / theirs.Seconds())
	}
	return d, limit, nil
}
