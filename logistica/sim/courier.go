package sim

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/waybillhq/waybill/logistica/sim/streets"
)

// courier is somebody who rides.
type courier struct {
	sim    *Sim
	who    Courier
	key    string
	rng    *rand.Rand
	at     streets.Place
	device *device
	woken  chan struct{}
	no     string // the order last declined: it may stand in the list for a moment
}

const (
	// lookEvery is how often a courier looks for jobs without being called, of
	// simulated time, within bounds of the real one.
	lookEvery  = 30 * time.Second
	fastLook   = time.Second
	slowLook   = 15 * time.Second
	breath     = 20 * time.Millisecond // of real time, between two jobs
	breakOneIn = 40                    // deliveries, after which a courier has a coffee
	declineIn  = 20                    // offers, of which a courier declines one
)

// run works until ctx ends, and goes home.
func (c *courier) run(ctx context.Context) error {
	var tools sync.WaitGroup
	toolsCtx, stop := context.WithCancel(ctx)
	tools.Go(func() { c.device.run(toolsCtx) })
	tools.Go(func() { c.sim.listen(toolsCtx, c.key, c.woken) })
	err := c.work(ctx)
	stop()
	tools.Wait()
	return err
}

func (c *courier) work(ctx context.Context) error {
	clock := c.sim.clock.Load()
	if clock.sleep(ctx, time.Duration(c.rng.Int64N(int64(time.Minute)))) != nil {
		return nil // not all begin in one moment
	}
	c.stand(true)
	if err := c.goOnDuty(ctx); err != nil {
		return c.sim.fatal(ctx, err)
	}
	defer c.goHome(ctx)
	for ctx.Err() == nil {
		j, err := c.job(ctx, "")
		if err := c.sim.fatal(ctx, err); err != nil {
			return err
		}
		if j == nil {
			c.stand(true)
			if c.await(ctx) != nil {
				return nil
			}
			continue
		}
		if err := c.deliver(ctx, j); err != nil {
			return err
		}
		if c.rng.IntN(breakOneIn) == 0 {
			c.coffee(ctx)
		}
		if sleep(ctx, breath) != nil {
			return nil
		}
	}
	return nil
}

// goOnDuty is refused where the courier has a job already: that is duty enough.
func (c *courier) goOnDuty(ctx context.Context) error {
	err := c.status(ctx, "AVAILABLE")
	if err != nil && statusOf(err) != http.StatusConflict {
		return err
	}
	c.sim.counters.onDuty.Add(1)
	return nil
}

func (c *courier) status(ctx context.Context, state string) error {
	return c.sim.client.do(ctx, request{method: http.MethodPost, path: "/v1/courier/status", key: c.key, body: duty{state}})
}

// goHome is the last thing that is asked of the product, and not insisted on.
func (c *courier) goHome(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	c.sim.counters.onDuty.Add(-1)
	_, _ = c.sim.client.once(ctx, request{method: http.MethodPost, path: "/v1/courier/status", key: c.key, body: duty{"OFFLINE"}})
}

func (c *courier) coffee(ctx context.Context) {
	if c.status(ctx, "PAUSED") != nil {
		return // there is a job
	}
	if c.sim.clock.Load().sleep(ctx, 5*time.Minute) == nil {
		_ = c.status(ctx, "AVAILABLE") // else the next look for a job tells why
	}
}

// await waits to be called, or until it is time to look.
func (c *courier) await(ctx context.Context) error {
	t := time.NewTimer(min(max(c.sim.clock.Load().real(lookEvery), fastLook), slowLook))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.woken:
	case <-t.C:
	}
	return nil
}

// job is the courier's first, or that of an order; nil if there is none.
func (c *courier) job(ctx context.Context, order string) (*job, error) {
	var list jobs
	err := c.sim.client.do(ctx, request{method: http.MethodGet, path: "/v1/courier/jobs", key: c.key, into: &list})
	if err != nil {
		return nil, err
	}
	for i := range list.Jobs {
		if o := list.Jobs[i].order(); o == order || order == "" && o != c.no {
			return &list.Jobs[i], nil
		}
	}
	return nil, nil //nolint:nilnil // no job is no fault
}

// stand tells where the courier is when not riding.
func (c *courier) stand(reached bool) {
	c.device.ping(moment{at: c.sim.plan.city.Point(c.at)}, reached)
}
