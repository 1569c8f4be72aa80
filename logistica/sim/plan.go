package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/waybillhq/waybill/logistica/sim/streets"
)

// What a random sequence is for. Each thing has its own, so that what happens to
// one, and when, changes nothing of another.
const (
	ofArrivals = iota
	ofMerchants
	ofCouriers
	ofOrders
	ofRides
)

func random(seed uint64, kind, index int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(kind)<<48|uint64(index))) //nolint:gosec // a simulation
}

// Courier is somebody who rides, as an enrolment needs it.
type Courier struct {
	Index   int // from 0: the same seed makes the same courier of it
	Name    string
	Phone   string
	Vehicle string // MOTORBIKE
	home    streets.Place
	pace    float64 // metres a second
}

// merchant is who sells.
type merchant struct {
	name string
	at   streets.Place
	menu []dish
}

// fate is what becomes of an order, as far as people decide it.
type fate int

const (
	delivered fate = iota
	absent         // nobody opens: it goes back
	cancelled      // the merchant cancels, soon
)

// order is all that is decided of an order before it is made.
type order struct {
	index    int
	merchant int
	body     newOrder
	fate     fate
	cooking  time.Duration // how long the courier waits at the merchant's
	doorstep time.Duration // and at the customer's
	cancel   time.Duration // after which a cancelled one is
}

// plan is all that is decided by the seed. It is pure: it may be asked in any
// order and from many sides.
type plan struct {
	city      *streets.City
	seed      uint64
	merchants []merchant
}

func newPlan(city *streets.City, seed uint64, merchants int) *plan {
	p := &plan{city: city, seed: seed}
	for i := range merchants {
		r := random(seed, ofMerchants, i)
		k := kitchens[i%len(kitchens)]
		at := city.DrawNear(r, centre, 6000)
		name := k.kind + " " + saints[(i/len(kitchens)+r.IntN(len(saints)))%len(saints)]
		p.merchants = append(p.merchants, merchant{name, at, k.menu})
	}
	return p
}

// centre of the simulated trade: Paulista.
var centre = streets.Point{Lat: -23.5614, Lng: -46.6559}

func (p *plan) courier(i int) Courier {
	r := random(p.seed, ofCouriers, i)
	return Courier{
		Index: i, Name: firstNames[r.IntN(len(firstNames))] + " " + lastNames[r.IntN(len(lastNames))],
		Phone: phone(r), Vehicle: "MOTORBIKE",
		home: p.city.DrawNear(r, centre, 7000), pace: (20 + 5*r.Float64()) / 3.6,
	}
}

func (p *plan) order(i int) order {
	r := random(p.seed, ofOrders, i)
	o := order{index: i, merchant: r.IntN(len(p.merchants))}
	m := &p.merchants[o.merchant]
	to := p.city.DrawNear(r, p.city.Point(m.at), 4500)
	o.body = newOrder{
		Pickup: p.address(random(p.seed, ofMerchants, o.merchant), m.at), Dropoff: p.address(r, to),
		Customer: customer{firstNames[r.IntN(len(firstNames))] + " " + lastNames[r.IntN(len(lastNames))], phone(r)},
	}
	if r.IntN(3) == 0 {
		o.body.Dropoff.Reference = references[r.IntN(len(references))]
	}
	for range 1 + r.IntN(3) {
		d := m.menu[r.IntN(len(m.menu))]
		o.body.Items = append(o.body.Items, item{d.name, int32(1 + r.IntN(3)), d.price})
	}
	o.cooking = 2*time.Minute + time.Duration(r.Int64N(int64(5*time.Minute)))
	o.doorstep = time.Minute + time.Duration(r.Int64N(int64(2*time.Minute)))
	o.cancel = 10*time.Second + time.Duration(r.Int64N(int64(5*time.Minute)))
	switch n := r.IntN(100); {
	case n < 3:
		o.fate = absent
	case n < 5:
		o.fate = cancelled
	}
	return o
}

// address makes one up that belongs to the place.
func (p *plan) address(r *rand.Rand, at streets.Place) address {
	point := p.city.Point(at)
	d := p.city.District(point)
	return address{
		Street: p.city.Road(at).Name, Number: fmt.Sprint(1 + r.IntN(2800)), District: d.Name,
		CEP: fmt.Sprintf("%s%02d-%03d", d.CEP, r.IntN(100), r.IntN(1000)), Lat: point.Lat, Lng: point.Lng,
	}
}

// phone is of a form that is nobody's: no Brazilian number begins so.
func phone(r *rand.Rand) string { return fmt.Sprintf("+55 11 90000-%04d", r.IntN(10_000)) }
