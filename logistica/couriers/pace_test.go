package couriers

import (
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// Whatever a device does, it gets no more than its burst and the rate since.
func TestPaceGivesNoMoreThanItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now, id := newPace(20, 10), time.Unix(0, 0), uuid.New()
		start, taken := now, 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			n := rapid.IntRange(1, MaxFixes).Draw(t, "n")
			wait := p.take(id, n, now)
			if wait == 0 {
				taken += n
			} else if p.take(id, n, now.Add(wait+time.Microsecond)) != 0 {
				t.Fatalf("refused after the wait of %s that was asked for", wait)
			} else {
				now, taken = now.Add(wait+time.Microsecond), taken+n
			}
			if most := p.burst + 20*now.Sub(start).Seconds(); float64(taken) > most+1e-6 {
				t.Fatalf("%d taken, at most %g", taken, most)
			}
		}
	})
}

func TestPaceRemembersABoundedNumberOfCouriers(t *testing.T) {
	p, now := newPace(20, 100), time.Unix(0, 0)
	for range 5000 {
		p.take(uuid.New(), 5, now)
	}
	if len(p.buckets) > 100 {
		t.Errorf("%d", len(p.buckets))
	}
}

// Distances of the product's own city, from other people's calculators.
func TestDistancesAndRides(t *testing.T) {
	se, airport := point{-23.5505, -46.6333}, point{-23.4356, -46.4731} // Praça da Sé, Guarulhos
	if d := straight(se, airport); math.Abs(d-20_740) > 100 {
		t.Errorf("%g m", d)
	}
	if straight(se, se) != 0 || street(se, airport) != int64(math.Round(straight(se, airport)*1.35)) {
		t.Error("street")
	}
	if d := straight(point{0, 179.9}, point{0, -179.9}); d > 23_000 {
		t.Errorf("across the date line %g m", d)
	}
	if ride(22_000) != time.Hour {
		t.Errorf("22 km in %s", ride(22_000))
	}
}
