package relay

import (
	"context"
	"time"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/topic"
	"github.com/waybillhq/waybill/event"
)

// live measures a relay that runs while others write.
func (r *run) live(ctx context.Context) error {
	if r.cfg.Latency == 0 && r.cfg.Sustain == 0 {
		return nil
	}
	if err := r.step(ctx, "empty the outbox", time.Minute, r.clear); err != nil {
		return err
	}
	return r.with(ctx, marks, func(p *child.Process) error {
		if err := r.step(ctx, "start the relay", time.Minute, func(ctx context.Context) error { return r.outbox.reading(ctx, p) }); err != nil {
			return err
		}
		if err := r.latency(ctx); err != nil {
			return err
		}
		return r.sustained(ctx, p)
	})
}

// latencyKeys: so many connections that a commit which waits for the disk
// holds up no other.
var latencyKeys = topic.Keys{Writers: 8, PerWriter: 625}

// warmup of a load whose waits are taken: connections open, statements are
// prepared.
const warmup = time.Second

func (r *run) latency(ctx context.Context) error {
	if r.cfg.Latency == 0 {
		return nil
	}
	load := topic.Load{
		Keys: latencyKeys, Rate: r.cfg.Rate, Warmup: warmup, Length: r.cfg.Latency, Patience: 30 * time.Second,
		Write: r.outbox.WriteOne(latencyTopic),
	}
	return r.step(ctx, "take the time of one event", time.Minute+2*r.cfg.Latency, func(ctx context.Context) error {
		w, err := topic.Latency(event.WithTenant(ctx, "bench"), r.engines.Broker, r.outbox.Topic(latencyTopic), load)
		if err != nil {
			return err
		}
		r.res.Mean, r.res.P50, r.res.P99 = &w.Mean, &w.P50, &w.P99
		r.count(w.Tally, w.Lost)
		return nil
	})
}

// sustained counts what was published by the moment the writers stop, and then
// lets the relay catch up.
func (r *run) sustained(ctx context.Context, p *child.Process) error {
	if r.cfg.Sustain == 0 {
		return nil
	}
	name := r.outbox.Topic(sustainedTopic)
	var before, at int64
	var b Backlog
	var took time.Duration
	err := r.step(ctx, "write as fast as can be", time.Minute+2*r.cfg.Sustain, func(ctx context.Context) (err error) {
		if before, err = r.published(ctx, name); err != nil {
			return err
		}
		began := time.Now()
		if b, err = r.outbox.sustain(ctx, sustainedTopic, r.cfg.Sustain); err != nil {
			return err
		}
		took = time.Since(began)
		at, err = r.published(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	r.written = append(r.written, b)
	r.res.SustainedWritten = pointer(float64(b.Events) / took.Seconds())
	r.res.Sustained = pointer(float64(at-before) / took.Seconds())
	r.res.SustainedBacklog = pointer(max(0, b.Events-(at-before)))
	return r.step(ctx, "drain what is left", limitFor(b.Events), func(ctx context.Context) error {
		all := b
		all.Events += before
		return r.finish(ctx, p, all, marks)
	})
}

// published counts the marks or, where nothing is marked, a topic's records.
func (r *run) published(ctx context.Context, name string) (int64, error) {
	if r.mode.table {
		return r.outbox.Marked(ctx)
	}
	return topic.Size(ctx, r.client, name)
}
