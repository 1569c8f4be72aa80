package couriers

import (
	"math"
	"time"
)

// point is a place in degrees.
type point struct{ lat, lng float64 }

const (
	earthRadius = 6_371_008.8 // metres, mean
	// detour is how much longer streets are than the straight line, and speed
	// what a motorbike makes in São Paulo with its lights and turns.
	detour = 1.35
	speed  = 22.0 / 3.6 // metres a second
	// unknownDistance stands for the way of a courier of whom no recent position
	// is known, in metres of street.
	unknownDistance = 5_000
)

// straight is the distance in metres over the ground, by the haversine formula.
func straight(a, b point) float64 {
	rad := math.Pi / 180
	h := square(math.Sin((b.lat-a.lat)*rad/2)) +
		math.Cos(a.lat*rad)*math.Cos(b.lat*rad)*square(math.Sin((b.lng-a.lng)*rad/2))
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

func square(x float64) float64 { return x * x }

// street is the distance in whole metres by street, estimated.
func street(a, b point) int64 { return int64(math.Round(straight(a, b) * detour)) }

// ride is how long so many metres take.
func ride(metres int64) time.Duration {
	return time.Duration(float64(metres) / speed * float64(time.Second)).Truncate(time.Second)
}
