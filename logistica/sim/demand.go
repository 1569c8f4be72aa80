package sim

import (
	"math/rand/v2"
	"time"
)

// byHour is how many orders there are in an hour of São Paulo's day, beside the
// mean of all: lunch from 12 to 14, dinner from 19 to 22.
var byHour = [24]float64{
	0.35, 0.20, 0.12, 0.08, 0.06, 0.08, 0.20, 0.45, 0.60, 0.55, 0.70, 1.20,
	2.40, 2.20, 1.00, 0.75, 0.70, 0.85, 1.40, 2.30, 2.60, 2.20, 1.40, 0.75,
}

var meanOfDay, mostOfDay = func() (mean, most float64) {
	for _, n := range byHour {
		mean += n / float64(len(byHour))
		most = max(most, n)
	}
	return mean, most
}()

// demand is the factor at a time, 1 on the mean of a day.
func demand(at time.Time) float64 { return byHour[at.In(saoPaulo).Hour()] / meanOfDay }

// arrivals are the simulated times at which orders come, by chance and more at
// mealtimes. The same seed and start give the same ones.
type arrivals struct {
	at   time.Time
	rate float64 // a minute, on the mean of a day
	rng  *rand.Rand
}

func newArrivals(seed uint64, start time.Time, rate float64) *arrivals {
	return &arrivals{start, rate, random(seed, ofArrivals, 0)}
}

// next thins a steady stream of the busiest hour's rate, so that an hour's end
// is met exactly.
func (a *arrivals) next() time.Time {
	most := mostOfDay / meanOfDay
	for {
		gap := a.rng.ExpFloat64() / (a.rate * most)
		a.at = a.at.Add(time.Duration(gap * float64(time.Minute)))
		if a.rng.Float64()*most < demand(a.at) {
			return a.at
		}
	}
}
