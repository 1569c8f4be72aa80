package sim

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/waybillhq/waybill/logistica/sim/streets"
)

// errGone is a job that is not the courier's any more.
var errGone = errors.New("the job is gone")

// deliver takes a job from wherever it stands to its end. Whatever the product
// refuses is taken for news: the courier looks again, and goes on from there.
func (c *courier) deliver(ctx context.Context, j *job) error {
	c.sim.counters.riding.Add(1)
	defer c.sim.counters.riding.Add(-1)
	e, known := c.sim.find(ctx, j.order())
	for tries := 0; ctx.Err() == nil; {
		next, err := c.step(ctx, j, e, known)
		switch {
		case err == nil && next == "":
			return nil
		case err == nil:
			j.State, tries = next, 0
			continue
		case errors.Is(err, errGone):
			return nil
		}
		if fatal := c.sim.fatal(ctx, err); fatal != nil {
			return fatal
		}
		if tries++; tries > 8 {
			return nil // it is looked at again when the courier looks for jobs
		}
		if c.sim.clock.Load().sleep(ctx, time.Duration(tries)*5*time.Second) != nil {
			return nil
		}
		if j, err = c.job(ctx, j.order()); err != nil || j == nil {
			return c.sim.fatal(ctx, err)
		}
	}
	return nil
}

// step does what comes next and returns the state it led to, "" at the end.
func (c *courier) step(ctx context.Context, j *job, e entry, known bool) (string, error) {
	switch j.State {
	case "ASSIGNED":
		return c.answer(ctx, j)
	case "PICKUP_ONGOING":
		return c.rideAnd(ctx, j, j.Pickup, "ARRIVED_AT_MERCHANT")
	case "ARRIVED_AT_MERCHANT":
		return c.dwellAnd(ctx, j, e.plan.cooking, "PICKED_UP")
	case "PICKED_UP":
		return c.move(ctx, j, move{To: "DELIVERY_ONGOING"})
	case "DELIVERY_ONGOING":
		return c.rideAnd(ctx, j, j.Dropoff, "ARRIVED_AT_CUSTOMER")
	case "ARRIVED_AT_CUSTOMER":
		return c.handOver(ctx, j, e, known)
	case "FAILED":
		return c.move(ctx, j, move{To: "RETURNING"})
	case "RETURNING":
		return c.bringBack(ctx, j, e, known)
	default: // not yet the courier's, or not any more, or somebody else's turn
		return "", c.await(ctx)
	}
}

// answer accepts an offer after some seconds, or declines it.
func (c *courier) answer(ctx context.Context, j *job) (string, error) {
	wait := 2*time.Second + time.Duration(c.rng.Int64N(int64(8*time.Second)))
	no := c.rng.IntN(declineIn) == 0
	if err := c.sim.clock.Load().sleep(ctx, wait); err != nil {
		return "", err
	}
	path := "/v1/courier/jobs/" + j.order()
	if no {
		err := c.sim.client.do(ctx, request{
			method: http.MethodPost, path: path + "/decline", key: c.key, body: map[string]string{"reason": "longe demais"},
		})
		if err == nil {
			c.no = j.order()
			c.sim.counters.declined.Add(1)
		}
		return "", err
	}
	err := c.sim.client.do(ctx, request{method: http.MethodPost, path: path + "/accept", key: c.key})
	if err == nil {
		c.sim.counters.accepted.Add(1)
	}
	return "PICKUP_ONGOING", err
}

func (c *courier) move(ctx context.Context, j *job, m move) (string, error) {
	return m.To, c.sim.client.do(ctx, request{
		method: http.MethodPost, path: "/v1/courier/jobs/" + j.order() + "/moves", key: c.key, body: m,
	})
}

// handOver gives the order to its customer for the code, if anybody opens.
func (c *courier) handOver(ctx context.Context, j *job, e entry, known bool) (string, error) {
	if err := c.dwell(ctx, j, e.plan.doorstep); err != nil {
		return "", err
	}
	if !known || e.plan.fate == absent {
		to, err := c.move(ctx, j, move{To: "FAILED", Reason: "ninguém atendeu"})
		if err == nil {
			c.sim.counters.failed.Add(1)
		}
		return to, err
	}
	code, err := c.sim.code(ctx, e)
	if err != nil {
		return "", err
	}
	if _, err = c.move(ctx, j, move{To: "DELIVERED", Code: code}); err != nil {
		return "", err
	}
	c.sim.counters.delivered.Add(1)
	return "", nil
}

// bringBack rides to the merchant, who takes the order back.
func (c *courier) bringBack(ctx context.Context, j *job, e entry, known bool) (string, error) {
	if err := c.ride(ctx, j, j.Pickup); err != nil {
		return "", err
	}
	if !known {
		return "", c.await(ctx) // somebody else's: its merchant will see to it
	}
	err := c.sim.client.do(ctx, request{
		method: http.MethodPost, path: "/v1/orders/" + j.order() + "/transitions", key: e.key, body: move{To: "RETURNED"},
	})
	if err == nil {
		c.sim.counters.returned.Add(1)
	}
	return "", err
}

func (c *courier) rideAnd(ctx context.Context, j *job, to address, state string) (string, error) {
	if err := c.ride(ctx, j, to); err != nil {
		return "", err
	}
	return c.move(ctx, j, move{To: state})
}

func (c *courier) dwellAnd(ctx context.Context, j *job, d time.Duration, state string) (string, error) {
	if err := c.dwell(ctx, j, d); err != nil {
		return "", err
	}
	return c.move(ctx, j, move{To: state})
}

// ride goes to an address, pinging on the way; called meanwhile, the courier
// looks whether the job still stands.
func (c *courier) ride(ctx context.Context, j *job, to address) error {
	s, clock := c.sim, c.sim.clock.Load()
	end, _ := s.plan.city.Nearest(streets.Point{Lat: to.Lat, Lng: to.Lng})
	way := newRide(s.plan.city.Route(c.at, end), c.who.pace, c.rng)
	last := clock.now()
	for arrived := way.route.Length() == 0; !arrived; {
		if err := c.pause(ctx, j, s.pingPause()); err != nil {
			c.at, _ = s.plan.city.Nearest(positionOf(way)) // where the courier has got to
			return err
		}
		now, before := clock.now(), way.ridden
		var m moment
		m, arrived = way.step(now.Sub(last))
		last = now
		s.counters.metres.Add(int64(way.ridden) - int64(before))
		c.device.ping(m, arrived || way.reached())
	}
	c.at = end
	return nil
}

func positionOf(r *ride) streets.Point {
	p, _ := r.route.At(r.ridden)
	return p
}

// dwell stays for so much simulated time, pinging.
func (c *courier) dwell(ctx context.Context, j *job, d time.Duration) error {
	clock := c.sim.clock.Load()
	for until := clock.now().Add(d); ; {
		left := clock.real(until.Sub(clock.now()))
		if left <= 0 {
			return nil
		}
		if err := c.pause(ctx, j, min(left, c.sim.pingPause())); err != nil {
			return err
		}
		c.stand(true)
	}
}

// pause waits so much real time, unless the job goes meanwhile.
func (c *courier) pause(ctx context.Context, j *job, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return nil
		case <-c.woken:
			if now, err := c.job(ctx, j.order()); err == nil && now == nil {
				return errGone
			}
		}
	}
}
