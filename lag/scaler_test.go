package lag

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pool is a process with so many workers, each good for some events a second,
// up to where more of them only stand in each other's way.
type pool struct {
	n     int
	each  float64
	limit int     // workers past which each further one costs
	cost  float64 // of it, as a share of one's work
}

func (p *pool) SetWorkers(n int) { p.n = n }

func (p *pool) rate() float64 {
	good := min(p.n, p.limit)
	return max(0, p.each*(float64(good)-p.cost*float64(p.n-good)))
}

func amount[T any](v T) *T { return &v }

// step lets a pool work for d and returns what it then knows of its load.
func (p *pool) step(now time.Time, behind *float64, in float64, d time.Duration) Load {
	out := min(p.rate(), in+*behind/d.Seconds())
	*behind = max(0, *behind+(in-out)*d.Seconds())
	return Load{At: now, Behind: amount(int64(*behind)), In: &in, Out: &out}
}

func TestScalerStaysWithinItsBoundsWhateverItIsTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(1, 10).Draw(t, "min")
		high := rapid.IntRange(low, 40).Draw(t, "max")
		p := &pool{}
		s := NewScaler(p, ScalerConfig{Min: low, Max: high})
		now := time.Unix(0, 0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(15 * time.Second)
			l := Load{At: now, Stalled: rapid.Bool().Draw(t, "stalled")}
			if rapid.Bool().Draw(t, "known") {
				l.Behind = amount(rapid.Int64Min(0).Draw(t, "behind"))
				l.In, l.Out = amount(rapid.Float64Range(0, 1e9).Draw(t, "in")), amount(rapid.Float64Range(0, 1e9).Draw(t, "out"))
			}
			was := p.n
			n := s.Step(l)
			if n != p.n || n < low || n > high {
				t.Fatalf("%d of %d to %d, told %d", n, low, high, p.n)
			}
			if (l.Behind == nil || l.Stalled) && n != was {
				t.Fatalf("from %d to %d by %+v", was, n, l)
			}
		}
	})
}

func TestScalerGrowsUntilTheLagDrainsInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pool{each: rapid.Float64Range(10, 100).Draw(t, "each"), limit: 64}
		in := p.each * rapid.Float64Range(0.1, 30).Draw(t, "load")
		s := NewScaler(p, ScalerConfig{Max: 64})
		now, behind := time.Unix(0, 0), 0.0
		for range 400 {
			now = now.Add(15 * time.Second)
			s.Step(p.step(now, &behind, in, 15*time.Second))
		}
		if behind > 60*in {
			t.Fatalf("%v behind, %d workers of %v for %v", behind, p.n, p.each, in)
		}
	})
}

func TestScalerBacksOffWhereMoreWorkersPassLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pool{each: 50, limit: rapid.IntRange(1, 20).Draw(t, "limit"), cost: rapid.Float64Range(0.3, 1).Draw(t, "cost")}
		best := p.each * float64(p.limit)
		s := NewScaler(p, ScalerConfig{Max: 64})
		now, behind := time.Unix(0, 0), 1e9
		bad := 0
		const steps = 2000
		for range steps {
			now = now.Add(15 * time.Second)
			s.Step(p.step(now, &behind, 100, 15*time.Second))
			if p.rate() < best*0.5 {
				bad++
			}
		}
		// It tries again now and then, ever more seldom, and goes back each time.
		if bad > steps/10 {
			t.Fatalf("%d of %d steps far below what %d workers pass", bad, steps, p.limit)
		}
	})
}

func TestScalerShrinksWhenThereIsLittleToDo(t *testing.T) {
	p := &pool{each: 100, limit: 64}
	s := NewScaler(p, ScalerConfig{Max: 32})
	now, behind := time.Unix(0, 0), 1e6
	for range 40 {
		now = now.Add(15 * time.Second)
		s.Step(p.step(now, &behind, 500, 15*time.Second))
	}
	most := p.n
	for range 200 {
		now = now.Add(15 * time.Second)
		s.Step(p.step(now, &behind, 50, 15*time.Second))
	}
	if most < 10 || p.n > 3 {
		t.Errorf("%d workers while behind, %d afterwards", most, p.n)
	}
}

func TestAnIdleProcessShrinksToItsLeast(t *testing.T) {
	p := &pool{each: 100, limit: 64}
	s := NewScaler(p, ScalerConfig{Min: 3, Max: 32})
	now, behind := time.Unix(0, 0), 1e5
	for range 20 {
		now = now.Add(15 * time.Second)
		s.Step(p.step(now, &behind, 500, 15*time.Second))
	}
	for range 1000 { // nothing comes in, and nothing passes
		now = now.Add(15 * time.Second)
		s.Step(p.step(now, &behind, 0, 15*time.Second))
	}
	if p.n != 3 {
		t.Errorf("%d workers with nothing to do", p.n)
	}
}

func TestAScalerThatCaughtUpDoesNotSwing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pool{each: rapid.Float64Range(10, 100).Draw(t, "each"), limit: 64}
		in := p.each * rapid.Float64Range(2, 40).Draw(t, "load")
		s := NewScaler(p, ScalerConfig{Max: 64})
		now, behind := time.Unix(0, 0), 1000*p.each
		changes := 0
		for step := range 400 {
			now = now.Add(15 * time.Second)
			was := p.n
			s.Step(p.step(now, &behind, in, 15*time.Second))
			if step > 300 && p.n != was {
				changes++
			}
		}
		// What it knows of its workers it forgets now and then, to see whether fewer do.
		if changes > 8 {
			t.Fatalf("%d changes in 100 steps of a steady load", changes)
		}
	})
}
