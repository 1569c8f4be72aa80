package lag

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Workers is what a Scaler grows and shrinks: the handlers a process runs at
// once.
type Workers interface {
	SetWorkers(n int)
}

// ScalerConfig bounds a Scaler. Zero values have defaults.
type ScalerConfig struct {
	Min, Max int           // workers; default 1 and 64
	Goal     time.Duration // how soon a lag shall be gone; default 1 min
	Every    time.Duration // between steps, long enough for a rate to follow; default 15 s
	// Hold is how long it stays where it is after growing was no use, twice that
	// each time again, at most HoldMax; default 1 min and 30 min.
	Hold, HoldMax time.Duration
	Calm          int // steps in a row with little to do before it shrinks; default 4
}

func (c ScalerConfig) withDefaults() ScalerConfig {
	or(&c.Min, 1)
	or(&c.Max, max(64, c.Min))
	c.Max = max(c.Max, c.Min)
	or(&c.Goal, time.Minute)
	or(&c.Every, 15*time.Second)
	or(&c.Hold, time.Minute)
	or(&c.HoldMax, 30*time.Minute)
	or(&c.Calm, 4)
	return c
}

// Load is what a process knows of its work. Nil is unknown.
type Load struct {
	At      time.Time
	Behind  *int64   // events to read
	In, Out *float64 // events a second
	Stalled bool     // a failing event holds it up: more workers fail as well
}

// Scaler finds how many workers drain a lag in time: it grows while the lag
// would take too long, takes a step back when that passed fewer events than
// before (the database is at its limit, or the workers stand in each other's
// way), and shrinks when there is little to do, not below what it has seen to be
// needed. It never acts on what is unknown.
type Scaler struct {
	cfg     ScalerConfig
	workers Workers

	n      int
	before float64       // events a second before the last growth; < 0: it did not just grow
	last   int           // workers before the last growth
	until  time.Time     // it does not grow before
	hold   time.Duration // of the next time
	idle   int           // steps with little to do
	each   float64       // events a second that a worker passed when there was enough to do; 0: not seen lately
	eachAt time.Time
	why    string
}

// NewScaler begins with ScalerConfig.Min workers.
func NewScaler(w Workers, cfg ScalerConfig) *Scaler {
	cfg = cfg.withDefaults()
	s := &Scaler{cfg: cfg, workers: w, n: cfg.Min, before: -1, hold: cfg.Hold}
	w.SetWorkers(s.n)
	return s
}

// Bounds of a comparison: below worse it passed fewer events than before it
// grew, below better growing was no use.
const (
	worse  = 0.95
	better = 1.05
)

// Why is why there are as many workers as the last change made it.
func (s *Scaler) Why() string { return s.why }

// Step takes in the load of now and returns how many workers there are after
// it.
func (s *Scaler) Step(l Load) int {
	n := s.next(l)
	if n != s.n {
		s.n = n
		s.workers.SetWorkers(n)
	}
	return s.n
}

func (s *Scaler) next(l Load) int {
	if l.Behind == nil || l.In == nil || l.Out == nil || l.Stalled {
		return s.n
	}
	if s.before >= 0 {
		if n, back := s.weigh(l); back {
			return n
		}
	}
	late := float64(*l.Behind) / s.cfg.Goal.Seconds()
	needed := *l.In + late
	short := s.waits(l) && *l.Out < needed*worse && *l.Out-*l.In < late*worse
	s.learn(l)
	switch {
	case short:
		s.idle = 0
		return s.grow(l, needed)
	case late <= *l.Out/4:
		if s.idle++; s.idle >= s.cfg.Calm {
			s.idle = 0
			return s.shrink(l)
		}
	default:
		s.idle = 0
	}
	return s.n
}

// waits tells whether there is more than enough to do. What workers have in hand, and what
// passed since the place was saved last, looks like a lag and is none.
func (s *Scaler) waits(l Load) bool {
	return *l.Behind > int64(s.n) && float64(*l.Behind) > saturated**l.Out
}

// weigh compares with before the growth; back is true if it was a mistake.
func (s *Scaler) weigh(l Load) (n int, back bool) {
	before := s.before
	s.before = -1
	switch {
	case !s.waits(l): // it passed all there was: that tells nothing
	case *l.Out < before*worse:
		s.wait(l.At)
		s.why = fmt.Sprintf("%d passed less than %d: %.0f events/s after %.0f", s.n, s.last, *l.Out, before)
		return s.last, true
	case *l.Out < before*better:
		s.wait(l.At)
	default:
		s.hold = s.cfg.Hold
	}
	return s.n, false
}

func (s *Scaler) wait(now time.Time) {
	s.until = now.Add(s.hold)
	s.hold = min(2*s.hold, s.cfg.HoldMax)
}

// grow goes towards what is needed, by half again at most: what holds for few
// workers need not hold for many.
func (s *Scaler) grow(l Load, needed float64) int {
	if s.n >= s.cfg.Max || l.At.Before(s.until) {
		return s.n
	}
	want := s.n + 1
	if *l.Out > 0 {
		want = int(math.Ceil(min(float64(s.n)*needed / *l.Out, float64(s.n)*1.5)))
	}
	s.before, s.last = *l.Out, s.n
	s.why = fmt.Sprintf("%.0f events/s needed (%.0f come in, %d behind to be gone within %s), %.0f pass", needed, *l.In, *l.Behind, s.cfg.Goal, *l.Out)
	return min(max(want, s.n+1), s.cfg.Max)
}

// Run steps with what read tells, until ctx ends; then it returns nil. An error
// of read is taken for unknown.
func (s *Scaler) Run(ctx context.Context, read func(context.Context) (Load, error)) error {
	tick := time.NewTicker(s.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		l, err := read(ctx)
		if err != nil {
			l = Load{At: time.Now()}
		}
		s.Step(l)
	}
}
