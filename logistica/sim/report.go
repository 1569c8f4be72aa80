package sim

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	pingEvery = 5 * time.Second
	// fastestPing is of real time: the product takes no more of one device.
	fastestPing = 100 * time.Millisecond
	// flushEvery is how long pings wait for others, of real time, where they
	// come faster than that.
	flushEvery = 400 * time.Millisecond
	maxReport  = 100 // pings
	maxHeld    = 500 // pings
)

// device is a courier's telephone: it sends where it is, keeps what it cannot
// send, and now and then sends a thing twice.
type device struct {
	sim *Sim
	key string
	rng *rand.Rand

	mu    sync.Mutex
	seq   int64
	fresh []fix
	held  []fix // while out of reach
	out   bool
	turn  bool // it is the turn of what was held back
}

// newDevice counts from the time: a device that starts again counts on.
func newDevice(s *Sim, key string, r *rand.Rand) *device {
	return &device{sim: s, key: key, rng: r, seq: time.Now().UnixMilli()}
}

// ping notes where the device is, in reach or not.
func (d *device) ping(m moment, reached bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now().UTC()
	d.seq = max(d.seq+1, now.UnixMilli())
	at := seen(m.at, d.rng)
	f := fix{d.seq, at.Lat, at.Lng, m.speed, m.heading, 8, now}
	if d.out && reached {
		d.turn = false // what is new first
	}
	d.out = !reached
	if d.out {
		d.held = d.bounded(append(d.held, f))
	} else {
		d.fresh = d.bounded(append(d.fresh, f))
	}
}

func (d *device) bounded(fixes []fix) []fix {
	if over := len(fixes) - maxHeld; over > 0 {
		d.sim.counters.dropped.Add(int64(over))
		return fixes[over:]
	}
	return fixes
}

// run sends until ctx ends.
func (d *device) run(ctx context.Context) {
	every := max(d.sim.pingPause(), flushEvery)
	for sleep(ctx, every) == nil {
		fixes, late, again := d.take()
		if len(fixes) == 0 {
			continue
		}
		wait, err := d.sim.client.once(ctx, request{
			method: http.MethodPost, path: "/v1/courier/positions", key: d.key, body: positions{fixes},
		})
		switch {
		case err == nil:
			d.sim.counters.pings.Add(int64(len(fixes)))
			d.sim.counters.late.Add(int64(late))
			d.sim.counters.again.Add(int64(again))
		case statusOf(err) != 0: // it would be refused again
			d.sim.counters.dropped.Add(int64(len(fixes)))
			d.sim.log.DebugContext(ctx, "simulation: positions refused", "error", err)
		default:
			d.giveBack(fixes[:len(fixes)-again])
			if sleep(ctx, wait) != nil {
				return
			}
		}
	}
}

// take is what to send next: what is new first, so that what was held back comes
// late, and then by turns; of what was held back some comes twice.
func (d *device) take() (fixes []fix, late, again int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out {
		return nil, 0, 0
	}
	if len(d.fresh) > 0 && (!d.turn || len(d.held) == 0) {
		d.turn = true
		n := min(len(d.fresh), maxReport)
		fixes, d.fresh = d.fresh[:n:n], d.fresh[n:]
		return fixes, 0, 0
	}
	d.turn = false
	n := min(len(d.held), maxReport*3/4)
	fixes, d.held = d.held[:n:n], d.held[n:]
	again = (n + 3) / 4
	return append(fixes, fixes[:again]...), n, again
}

// giveBack keeps what was not taken for the next time.
func (d *device) giveBack(fixes []fix) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = d.bounded(append(d.held, fixes...))
}

// pingPause is the real time between two pings of a device.
func (s *Sim) pingPause() time.Duration {
	return max(s.clock.Load().real(pingEvery), fastestPing)
}
