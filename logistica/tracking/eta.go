package tracking

import (
	"math"
	"time"

	"github.com/waybillhq/waybill/logistica/contracts"
)

// Point is a place on earth, in degrees.
type Point struct{ Lat, Lng float64 }

// Rounded is the point to about a metre: what is finer is noise of the device.
func (p Point) Rounded() Point {
	return Point{math.Round(p.Lat*1e5) / 1e5, math.Round(p.Lng*1e5) / 1e5}
}

const (
	earthRadius = 6_371_008.8 // metres, mean
	// detour is how much longer a way through streets is than the crow's. In
	// cities it lies between 1.2 and 1.5.
	detour = 1.35
	// usual is a motorbike's pace through São Paulo's traffic, lights and all,
	// in metres a second: 22 km/h.
	usual = 22 / 3.6
	// slowest and fastest bound what is believed of a courier's recent pace:
	// one who waits at a light will not wait for ever.
	slowest, fastest = 8 / 3.6, 40 / 3.6
	// recentFixes is how many fixes tell a courier's recent pace.
	recentFixes = 24
	// recentTime is how old they may be, before the newest.
	recentTime = 3 * time.Minute
)

// Distance is the crow's, in metres.
func Distance(a, b Point) float64 {
	const degree = math.Pi / 180
	sinLat, sinLng := math.Sin((b.Lat-a.Lat)*degree/2), math.Sin((b.Lng-a.Lng)*degree/2)
	h := sinLat*sinLat + math.Cos(a.Lat*degree)*math.Cos(b.Lat*degree)*sinLng*sinLng
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// Remaining estimates what is left to ride through streets, in metres: to the
// customer, by way of the merchant where the order is not picked up yet.
func Remaining(at, pickup, dropoff Point, pickedUp bool) float64 {
	if pickedUp {
		return detour * Distance(at, dropoff)
	}
	return detour * (Distance(at, pickup) + Distance(pickup, dropoff))
}

// Pace is how fast the last fixes, newest first, were ridden, in metres a
// second; 0 where they do not tell.
func Pace(way []Fix) float64 {
	var metres float64
	var took time.Duration
	for i := 1; i < len(way); i++ {
		if way[0].Time.Sub(way[i].Time) > recentTime {
			break
		}
		metres += Distance(way[i-1].Point, way[i].Point)
		took = way[0].Time.Sub(way[i].Time)
	}
	if took < 10*time.Second {
		return 0
	}
	return metres / took.Seconds()
}

// Arrival is when somebody who is at a place at that time will have ridden so
// many metres: half of the recent pace, in metres a second, and half of what is
// usual. A pace of 0 is not known.
func Arrival(at time.Time, metres, pace float64) time.Time {
	speed := usual
	if pace > 0 {
		speed = (usual + min(max(pace, slowest), fastest)) / 2
	}
	return at.Add(time.Duration(metres / speed * float64(time.Second)))
}

// course is an order's places and state, as far as they are known.
type course struct {
	state           string
	pickup, dropoff maybe
}

type maybe struct{ lat, lng *float64 }

func (m maybe) point() (p Point, ok bool) {
	if m.lat == nil || m.lng == nil {
		return Point{}, false
	}
	return Point{*m.lat, *m.lng}, true
}

// left is what is left to ride to the customer, in metres.
func (c course) left(at Point) (metres float64, ok bool) {
	pickup, known := c.pickup.point()
	dropoff, both := c.dropoff.point()
	if !known || !both {
		return 0, false
	}
	switch contracts.OrderState(c.state) {
	case contracts.OrderStateFailed, contracts.OrderStateReturning:
		return 0, false
	case contracts.OrderStatePickedUp, contracts.OrderStateDeliveryOngoing, contracts.OrderStateArrivedAtCustomer:
		return Remaining(at, pickup, dropoff, true), true
	default: // the states before; the order of facts may make it an older one yet
		return Remaining(at, pickup, dropoff, false), true
	}
}
