package sim

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/logistica/sim/streets"
)

func city(t testing.TB) *streets.City {
	t.Helper()
	c, err := streets.SaoPaulo()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheSameSeedMakesTheSamePlan(t *testing.T) {
	c := city(t)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := newPlan(c, seed, 12), newPlan(c, seed, 12)
		if !reflect.DeepEqual(a.merchants, b.merchants) {
			t.Fatal("other merchants")
		}
		indices := rapid.SliceOfN(rapid.IntRange(0, 1_000_000), 1, 5).Draw(t, "indices")
		orders := map[int]order{}
		for _, i := range indices {
			orders[i] = a.order(i)
		}
		for j := len(indices) - 1; j >= 0; j-- { // asked in another order
			if i := indices[j]; !reflect.DeepEqual(b.order(i), orders[i]) || a.courier(i) != b.courier(i) {
				t.Fatalf("other order or courier %d", i)
			}
		}
		start := time.Date(2026, 5, 1, rapid.IntRange(0, 23).Draw(t, "hour"), 0, 0, 0, saoPaulo)
		x, y := newArrivals(seed, start, 3), newArrivals(seed, start, 3)
		for range 20 {
			if p, q := x.next(), y.next(); !p.Equal(q) || p.Before(start) {
				t.Fatalf("%s and %s", p, q)
			}
		}
	})
}

func TestAnotherSeedMakesAnotherPlan(t *testing.T) {
	c := city(t)
	a, b := newPlan(c, 1, 5), newPlan(c, 2, 5)
	if reflect.DeepEqual(a.order(0), b.order(0)) || a.courier(0) == b.courier(0) || a.courier(0) == a.courier(1) {
		t.Error("the seed changes nothing")
	}
}

func TestOrdersComeAtMealtimes(t *testing.T) {
	start := time.Date(2026, 5, 1, 0, 0, 0, 0, saoPaulo)
	a := newArrivals(7, start, 10)
	var hours [24]int
	n := 0
	for at := a.next(); at.Before(start.Add(24 * time.Hour)); at = a.next() {
		hours[at.In(saoPaulo).Hour()]++
		n++
	}
	if want := 24 * 60 * 10; math.Abs(float64(n-want)) > 5*math.Sqrt(float64(want)) {
		t.Errorf("%d orders in a day, want about %d", n, want)
	}
	for _, peak := range []int{12, 13, 19, 20, 21} {
		for _, calm := range []int{3, 9, 16} {
			if hours[peak] < 2*hours[calm] {
				t.Errorf("%d orders at %d h, %d at %d h", hours[peak], peak, hours[calm], calm)
			}
		}
	}
}

func TestOrdersAreWhatTheProductTakes(t *testing.T) {
	p := newPlan(city(t), 3, 20)
	fates := map[fate]int{}
	for i := range 600 {
		o := p.order(i)
		fates[o.fate]++
		for _, a := range []address{o.body.Pickup, o.body.Dropoff} {
			if a.Street == "" || len(a.CEP) != 9 || a.District == "" || a.Number == "" {
				t.Fatalf("%+v", a)
			}
			if _, off := p.city.Nearest(streets.Point{Lat: a.Lat, Lng: a.Lng}); off > 0.1 {
				t.Fatalf("%.1f m off the road", off)
			}
		}
		if len(o.body.Items) == 0 || o.body.Items[0].Quantity < 1 || !strings.HasPrefix(o.body.Customer.Phone, "+55 11 9") {
			t.Fatalf("%+v", o.body)
		}
		if p.order(i).body.Pickup != p.order(i).body.Pickup {
			t.Fatal("a merchant that moves")
		}
	}
	if fates[absent] < 5 || fates[cancelled] < 3 || fates[delivered] < 500 {
		t.Errorf("fates %v", fates)
	}
	if p.merchants[0].name == p.merchants[1].name {
		t.Error("two merchants of one name")
	}
}

func TestACourierNeverLeavesTheRoadAndRidesAtItsSpeed(t *testing.T) {
	c := city(t)
	rapid.Check(t, func(t *rapid.T) {
		seed, index := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 500).Draw(t, "courier")
		who := newPlan(c, seed, 1).courier(index)
		r := random(seed, ofRides, index)
		d := newRide(c.Route(who.home, c.Draw(r)), who.pace, r)
		tick := time.Duration(rapid.IntRange(5, 60).Draw(t, "tick")) * time.Second
		before, _ := d.route.At(0)
		var took time.Duration
		for arrived := d.route.Length() == 0; !arrived; {
			had := d.ridden
			var m moment
			m, arrived = d.step(tick)
			took += tick
			if m.speed < 20/3.6*5/6-1e-9 || m.speed > 25/3.6*7/6+1e-9 {
				t.Fatalf("%.1f km/h", m.speed*3.6)
			}
			if went := d.ridden - had; !arrived && math.Abs(went-m.speed*tick.Seconds()) > 1e-6 {
				t.Fatalf("%.2f m in %s at %.2f m/s", went, tick, m.speed)
			}
			if d := streets.Distance(before, m.at); d > m.speed*tick.Seconds()+0.01 {
				t.Fatalf("jumps %.1f m in %s", d, tick)
			}
			if _, off := c.Nearest(m.at); off > 0.05 {
				t.Fatalf("%.2f m off the road", off)
			}
			if off := streets.Distance(m.at, seen(m.at, r)); off > maxNoise+0.01 {
				t.Fatalf("the device is %.1f m wrong", off)
			}
			before = m.at
		}
		most := d.route.Length()/(20/3.6*5/6) + tick.Seconds()
		if took.Seconds() > most {
			t.Fatalf("%.0f m took %s", d.route.Length(), took)
		}
	})
}

func TestSomeDevicesAreOutOfReachForAWhile(t *testing.T) {
	c := city(t)
	lostOnes := 0
	for i := range 200 {
		r := random(5, ofRides, i)
		d := newRide(c.Route(c.Draw(r), c.Draw(r)), 6, r)
		silent := false
		for arrived := false; !arrived; {
			_, arrived = d.step(5 * time.Second)
			silent = silent || !d.reached()
		}
		if silent {
			lostOnes++
		}
	}
	if lostOnes < 8 || lostOnes > 50 {
		t.Errorf("%d of 200", lostOnes)
	}
}

func TestSimulatedTimeRunsAsFastAsItShould(t *testing.T) {
	c := newClock(time.Date(2026, 5, 1, 15, 0, 0, 0, time.UTC), 60)
	if c.real(time.Minute) != time.Second || c.start.Hour() != 12 {
		t.Errorf("%s, %s", c.real(time.Minute), c.start)
	}
	c.began = c.began.Add(-time.Minute)
	if d := c.now().Sub(c.start); d < time.Hour || d > time.Hour+10*time.Minute {
		t.Errorf("%s in a minute", d)
	}
}
