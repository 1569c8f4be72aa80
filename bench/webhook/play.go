package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/bench/stat"
	"github.com/waybillhq/waybill/webhook"
)

// fanMost is how many events are handed over in a transaction.
const fanMost = 1000

// patience bounds the wait for what should come at once.
const patience = 2 * time.Minute

// backlog hands events over first and has them sent then.
func (r *run) backlog(ctx context.Context) error {
	r.cfg.Progress(fmt.Sprintf("hand over %d events", r.cfg.Events))
	for from := 0; from < r.cfg.Events; from += fanMost {
		var events []webhook.Event
		for i := from; i < min(from+fanMost, r.cfg.Events); i++ {
			events = append(events, r.event(tenant(i%r.cfg.Tenants)))
		}
		if err := r.fan(ctx, events...); err != nil {
			return err
		}
	}
	r.cfg.Progress("send them")
	began := time.Now()
	_, stop := r.sender(ctx)
	sent := time.Duration(0)
	for sent == 0 {
		if err := wait(ctx, time.Millisecond); err != nil {
			return errors.Join(err, stop())
		}
		if took := time.Since(began); r.hear.received.Load() >= int64(r.cfg.Events) || took > patience {
			sent = took
		}
	}
	err := r.drained(ctx)
	took := time.Since(began)
	r.res.SentPerS, r.res.PerS = float64(r.cfg.Events)/sent.Seconds(), float64(r.cfg.Events)/took.Seconds()
	r.res.Lost += int64(r.cfg.Events) - r.hear.received.Load()
	return errors.Join(err, stop())
}

// paced sends at a steady rate, in rounds with and without a stalled endpoint in
// turn, so that what else the machine does falls on both.
func (r *run) paced(ctx context.Context) error {
	s, stop := r.sender(ctx)
	if err := r.warm(ctx, s); err != nil {
		return errors.Join(err, stop())
	}
	var p50s, p99s [2][]float64
	for n := range 2 * r.cfg.Rounds {
		// Well, stalled, stalled, well …: what grows as it goes on favours neither.
		stalled := (n+1)/2%2 == 1
		r.cfg.Progress(fmt.Sprintf("round %d of %d, %d events a second", n+1, 2*r.cfg.Rounds, r.cfg.Rate))
		waits, err := r.round(ctx, s, fmt.Sprint("one more ", n), stalled)
		if err != nil {
			return errors.Join(err, stop())
		}
		kind := 0
		if stalled {
			kind = 1
		}
		p50s[kind], p99s[kind] = append(p50s[kind], stat.Quantile(waits, 0.5)), append(p99s[kind], stat.Quantile(waits, 0.99))
	}
	r.res.P50, r.res.P99 = median(p50s[0]), median(p99s[0])
	r.res.StallP50, r.res.StallP99 = median(p50s[1]), median(p99s[1])
	if r.res.P99 > 0 {
		r.res.Ratio = r.res.StallP99 / r.res.P99
	}
	r.res.Stalled, r.res.Twice = r.hear.stalled.Load(), r.hear.twice.Load()
	return stop()
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// warm sends each tenant something, so that no round pays for what comes once.
func (r *run) warm(ctx context.Context, s *webhook.Sender) error {
	var events []webhook.Event
	for i := range r.cfg.Tenants {
		events = append(events, r.event(tenant(i)))
	}
	if err := r.fan(ctx, events...); err != nil {
		return err
	}
	s.Wake()
	return r.drained(ctx)
}

const tick = 20 * time.Millisecond

// round measures the tenants' events, beside as many to one more tenant.
func (r *run) round(ctx context.Context, s *webhook.Sender, other string, stalled bool) ([]time.Duration, error) {
	url := r.hear.wellURL
	if stalled {
		url = r.hear.stalledURL
	}
	e, err := r.endpoint(ctx, other, url)
	if err != nil {
		return nil, err
	}
	ticks := int(r.cfg.For / tick)
	began, n := time.Now(), 0
	for i := range ticks {
		if err := wait(ctx, time.Until(began.Add(time.Duration(i)*tick))); err != nil {
			return nil, err
		}
		var events []webhook.Event
		var ids []uuid.UUID
		for ; n < r.cfg.Rate*(i+1)*int(tick)/int(time.Second); n++ {
			ev := r.event(tenant(n % r.cfg.Tenants))
			events, ids = append(events, ev, r.event(other)), append(ids, ev.ID)
		}
		r.hear.measure(ids)
		if err := r.fan(ctx, events...); err != nil {
			return nil, err
		}
		s.Wake()
	}
	waits, missing := r.collect(ctx, n)
	r.res.Lost += int64(missing)
	// What is left of a stalled one goes with it.
	if err := r.store.Delete(ctx, other, e.ID); err != nil {
		return nil, err
	}
	return waits, r.drained(ctx)
}

// collect waits for n events to be received.
func (r *run) collect(ctx context.Context, n int) (waits []time.Duration, missing int) {
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; {
		more, left := r.hear.take()
		if waits = append(waits, more...); len(waits) >= n {
			return waits, 0
		}
		missing = left
		_ = wait(ctx, 5*time.Millisecond) // ctx is asked above
	}
	return waits, missing
}
