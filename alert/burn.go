package alert

import "time"

// Burn rates that fire, after the Site Reliability Workbook, chapter 5: of a
// window of 30 days, 2 % of the budget in one hour or 5 % in six. Each is also
// asked of a twelfth of its time, so that it ends soon after the cause does.
const (
	fastBurn, fastPart = 14.4, 720
	slowBurn, slowPart = 6.0, 120
	shortPart          = 12
)

// burn counts good and bad time of a group against an objective.
type burn struct {
	width   time.Duration // of a bucket
	buckets []bucket      // the oldest first
}

type bucket struct {
	from      time.Time
	good, bad float64 // seconds
}

func newBurn(o *Objective) *burn {
	// Five buckets for the shortest time that is asked of.
	return &burn{width: max(o.Window/fastPart/shortPart/5, time.Millisecond)}
}

// see counts the time since the last reading as good or bad. Time of which
// nothing is known is neither.
func (b *burn) see(now time.Time, d time.Duration, over verdict, o *Objective) {
	if n := len(b.buckets); n == 0 || now.Sub(b.buckets[n-1].from) >= b.width {
		b.buckets = append(b.buckets, bucket{from: now})
	}
	last := &b.buckets[len(b.buckets)-1]
	switch over {
	case yes:
		last.bad += d.Seconds()
	case no:
		last.good += d.Seconds()
	case unknown:
	}
	old := 0
	for old < len(b.buckets) && now.Sub(b.buckets[old].from) > o.Window/slowPart+b.width {
		old++
	}
	if old > 0 {
		b.buckets = append(b.buckets[:0:0], b.buckets[old:]...)
	}
}

// holds is true if the budget burns too fast over either pair of times.
func (b *burn) holds(now time.Time, o *Objective) verdict {
	fast := b.both(now, o, o.Window/fastPart, fastBurn)
	slow := b.both(now, o, o.Window/slowPart, slowBurn)
	switch {
	case fast == yes || slow == yes:
		return yes
	case fast == unknown || slow == unknown:
		return unknown
	}
	return no
}

func (b *burn) both(now time.Time, o *Objective, long time.Duration, limit float64) verdict {
	a, c := b.rate(now, o, long, limit), b.rate(now, o, long/shortPart, limit)
	switch {
	case a == no || c == no:
		return no
	case a == unknown || c == unknown:
		return unknown
	}
	return yes
}

// rate compares the share of bad time in the last d with what the budget
// allows. What is unknown of d is taken for good: so much bad time is too much
// whatever the rest was. Where half of d is unknown it is not said to be well.
func (b *burn) rate(now time.Time, o *Objective, d time.Duration, limit float64) verdict {
	var good, bad float64
	for _, k := range b.buckets {
		if now.Sub(k.from) <= d {
			good, bad = good+k.good, bad+k.bad
		}
	}
	switch allowed := limit * (1 - o.Share); {
	case bad/d.Seconds() > min(allowed, 0.999):
		return yes
	case good+bad < d.Seconds()/2:
		return unknown
	}
	return no
}
