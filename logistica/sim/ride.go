package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/waybillhq/waybill/logistica/sim/streets"
)

// ride is a way along a route at a pace that varies by a sixth, as lights and
// lorries have it.
type ride struct {
	route  streets.Route
	pace   float64 // metres a second, on the mean
	ridden float64 // metres
	mood   float64 // -1 to 1: how the traffic is just now
	rng    *rand.Rand
	gone   time.Duration
	lost   lost
}

// lost is when the device is out of reach, after the ride began.
type lost struct{ from, to time.Duration }

func newRide(route streets.Route, pace float64, r *rand.Rand) *ride {
	d := &ride{route: route, pace: pace, rng: r}
	if r.IntN(8) == 0 {
		whole := time.Duration(route.Length() / pace * float64(time.Second))
		d.lost.from = time.Duration(r.Float64() * float64(whole))
		d.lost.to = d.lost.from + 30*time.Second + time.Duration(r.Int64N(int64(90*time.Second)))
	}
	return d
}

// moment is where a courier is and how.
type moment struct {
	at      streets.Point
	heading float64 // degrees clockwise from north
	speed   float64 // metres a second
}

// step rides for so long, and tells whether that was all.
func (d *ride) step(dt time.Duration) (m moment, arrived bool) {
	d.mood = min(max(d.mood+(d.rng.Float64()-0.5)*0.6, -1), 1)
	m.speed = d.pace * (1 + d.mood/6)
	d.gone += dt
	d.ridden = min(d.ridden+m.speed*dt.Seconds(), d.route.Length())
	m.at, m.heading = d.route.At(d.ridden)
	return m, d.ridden >= d.route.Length()
}

// reached tells whether the device has the net just now.
func (d *ride) reached() bool { return d.gone < d.lost.from || d.gone >= d.lost.to }

// noise is how wrong a device is: a few metres, and never many.
const (
	noise    = 4.0
	maxNoise = 12.0
)

// seen is where the device says it is.
func seen(at streets.Point, r *rand.Rand) streets.Point {
	north, east := r.NormFloat64()*noise, r.NormFloat64()*noise
	if off := math.Hypot(north, east); off > maxNoise {
		north, east = north*maxNoise/off, east*maxNoise/off
	}
	return at.Offset(north, east)
}
