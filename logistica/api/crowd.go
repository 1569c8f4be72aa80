package api

import "time"

// crowd is what a merchant may send while others send something, too. Each may
// always send what is assured. More is let through as long as all events reach
// the streams in time: the pace rises by a quarter a second while somebody would
// send more and there is room, and falls at once where events are late. A
// merchant that is alone has the whole rate: its flood delays nobody but itself.
// What it was carried at in time it keeps when another comes.
//
// A number that is set once would be too high for a small machine and too low
// for a big one; and what an order costs depends on what the merchants'
// couriers, hooks and pages do with it. pace's lock guards it.
type crowd struct {
	assured, most float64
	delays        *Delays

	pace   float64 // requests a second of each merchant
	held   bool    // somebody would have sent more since the last look
	let    int     // requests let in since then
	looked time.Time
	rests  time.Time // it does not rise before

	last, other seenMerchant // the two that were seen last
}

type seenMerchant struct {
	id string
	at time.Time
}

const (
	lookEvery = 250 * time.Millisecond
	riseBy    = 1.06 // at each look
	fallTo    = 0.7
	fadeTo    = 0.98        // what a merchant alone does not use any more
	ahead     = 1.25        // and of what it uses, so much more
	restFor   = time.Second // what was let in before a fall must pass first
	companyIn = 10 * time.Second
	atOnce    = 25 // requests of one merchant in a crowd: a page asks for several
)

func newCrowd(assured, most float64, delays *Delays) *crowd {
	assured = min(assured, most)
	return &crowd{assured: assured, most: most, delays: delays, pace: assured}
}

// limits are the rate and the burst of a merchant now.
func (c *crowd) limits(merchant string, burst float64, now time.Time) (rate, most float64) {
	alone := c.alone(merchant, now)
	if now.Sub(c.looked) >= lookEvery {
		c.look(now, alone)
	}
	if alone {
		return c.most, burst
	}
	return c.pace, min(burst, max(atOnce, c.pace/5))
}

// alone tells whether no other merchant was seen for a while.
func (c *crowd) alone(merchant string, now time.Time) bool {
	if c.last.id != merchant {
		c.last, c.other = seenMerchant{merchant, now}, c.last
	}
	c.last.at = now
	return c.other.id == "" || now.Sub(c.other.at) > companyIn
}

// look judges how things went since the last look.
func (c *crowd) look(now time.Time, alone bool) {
	seen, held := c.delays.since(), c.held
	used := float64(c.let) / max(now.Sub(c.looked).Seconds(), lookEvery.Seconds())
	c.looked, c.held, c.let = now, false, 0
	switch {
	case alone && !seen.tooMany():
		if !seen.room() {
			used = 0
		}
		c.pace = min(c.most, max(c.assured, c.pace*fadeTo, used*ahead))
	case seen.tooMany():
		c.pace, c.rests = max(c.assured, c.pace*fallTo), now.Add(restFor)
	case held && seen.room() && now.After(c.rests):
		c.pace = min(c.most, c.pace*riseBy)
	}
}
