package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// promise is how soon customers are told to expect their order.
	promise = 45 * time.Minute
	// impatience is after how much simulated time a customer who cannot order
	// gives up.
	impatience = 10 * time.Minute
	// maxCancels bounds the merchants who think of cancelling.
	maxCancels = 1024
)

// order makes orders until ctx ends: as they come, or as many as are taken.
func (s *Sim) order(ctx context.Context) error {
	if s.cfg.Max {
		return s.orderAll(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.cfg.Workers + 1)
	g.Go(func() error { // the limit's one more
		come := newArrivals(s.cfg.Seed, s.clock.Load().start, s.cfg.Rate)
		for i := 0; ; i++ {
			at := come.next()
			now := s.clock.Load().now()
			if now.Sub(at) > impatience {
				s.counters.skipped.Add(1)
				continue
			}
			if s.clock.Load().sleep(ctx, at.Sub(now)) != nil {
				return nil //nolint:nilerr // the end is no fault
			}
			g.Go(func() error { return s.make(ctx, i) })
		}
	})
	return g.Wait()
}

// orderAll makes as many as the product takes: whoever is told to wait waits.
func (s *Sim) orderAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range s.cfg.Workers {
		g.Go(func() error {
			for ctx.Err() == nil {
				if err := s.make(ctx, int(next.Add(1)-1)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// make makes the i-th order.
func (s *Sim) make(ctx context.Context, i int) error {
	o := s.plan.order(i)
	o.merchant %= len(s.keys)
	key := s.keys[o.merchant]
	// Not by the simulator's clock: what the product expects of couriers, it
	// expects at the speed of real ones, and would call every order late.
	due := time.Now().Add(promise).UTC()
	o.body.PromisedAt = &due
	var made madeOrder
	err := s.client.do(ctx, request{
		method: http.MethodPost, path: "/v1/orders", key: key, body: &o.body, into: &made,
		idempotency: fmt.Sprintf("sim-%x-%d", s.run, i),
	})
	if err != nil {
		return s.fatal(ctx, err)
	}
	s.counters.made.Add(1)
	s.book.put(made.ID, entry{made.TrackingToken, key, o})
	if o.fate == cancelled {
		s.cancelLater(ctx, made.ID, key, o)
	}
	return nil
}

func (s *Sim) cancelLater(ctx context.Context, id, key string, o order) {
	if s.cancels.Add(1) > maxCancels {
		s.cancels.Add(-1)
		return
	}
	s.aside.Go(func() {
		defer s.cancels.Add(-1)
		if s.clock.Load().sleep(ctx, o.cancel) != nil {
			return
		}
		err := s.client.do(ctx, request{
			method: http.MethodPost, path: "/v1/orders/" + id + "/transitions", key: key,
			body: move{To: "CANCELLED", Reason: "o cliente desistiu"},
		})
		if err == nil { // else it is under way already
			s.counters.cancelled.Add(1)
		}
	})
}

// fatal is an error that ends the simulation: a key that is not taken, since
// nothing would ever go on. Others are counted.
func (s *Sim) fatal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // what broke because ctx ended is not a fault
	}
	var r *refused
	if errors.As(err, &r) {
		if r.status == http.StatusUnauthorized || r.status == http.StatusForbidden {
			return fmt.Errorf("the API does not take a key (%w): give others, or have them made anew", err)
		}
		s.counters.errors.Add(1)
	}
	s.log.DebugContext(ctx, "simulation: refused", "error", err)
	return nil
}
