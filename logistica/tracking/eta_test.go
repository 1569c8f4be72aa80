package tracking

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/logistica/contracts"
)

var (
	masp       = Point{-23.5614, -46.6559}
	consolacao = Point{-23.5577, -46.6605}
	se         = Point{-23.5503, -46.6339}
)

func TestDistanceIsTheCrows(t *testing.T) {
	if d := Distance(masp, se); math.Abs(d-2560) > 30 {
		t.Errorf("from the museum to the cathedral %.0f m", d)
	}
	if d := Distance(Point{0, 179.9}, Point{0, -179.9}); math.Abs(d-22_239) > 10 {
		t.Errorf("across the date line %.0f m", d)
	}
}

func TestWhatIsLeftGoesByTheMerchantUntilItIsPickedUp(t *testing.T) {
	before, after := Remaining(consolacao, masp, se, false), Remaining(consolacao, masp, se, true)
	if want := detour * (Distance(consolacao, masp) + Distance(masp, se)); before != want {
		t.Errorf("before %.0f m, want %.0f", before, want)
	}
	if want := detour * Distance(consolacao, se); after != want {
		t.Errorf("after %.0f m, want %.0f", after, want)
	}
}

func TestArrivalBlendsTheRecentPaceWithTheUsual(t *testing.T) {
	for _, c := range []struct{ pace, kmh float64 }{
		{0, 22}, {22 / 3.6, 22}, {30 / 3.6, 26}, {0.1, 15}, {200 / 3.6, 31},
	} {
		got := Arrival(noon, 10_000, c.pace).Sub(noon).Hours()
		if want := 10 / c.kmh; math.Abs(got-want) > 1e-6 {
			t.Errorf("at %.1f m/s %.3f h, want %.3f", c.pace, got, want)
		}
	}
}

func TestPaceIsThatOfTheLastMinutes(t *testing.T) {
	var way []Fix // newest first: 5 s and 36 m apart, 26 km/h
	for i := range 100 {
		way = append(way, Fix{Point: Point{-23.55 - float64(i)*36/111_195, -46.63}, Time: noon.Add(-time.Duration(i) * 5 * time.Second)})
	}
	if p := Pace(way); math.Abs(p-7.2) > 0.05 {
		t.Errorf("%.2f m/s", p)
	}
	way[99].Lat = 0 // long ago, far away
	if p := Pace(way); math.Abs(p-7.2) > 0.05 {
		t.Errorf("%.2f m/s", p)
	}
	for _, few := range [][]Fix{nil, way[:1], way[:2]} {
		if p := Pace(few); p != 0 {
			t.Errorf("%d fixes tell %.2f m/s", len(few), p)
		}
	}
}

func TestArrivalIsAlwaysFiniteAndLaterForMoreWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		metres, pace := rapid.Float64Range(0, 1e6).Draw(t, "metres"), rapid.Float64Range(0, 1e4).Draw(t, "pace")
		a, b := Arrival(noon, metres, pace), Arrival(noon, metres+100, pace)
		if a.Before(noon) || !b.After(a) {
			t.Fatalf("%s, then %s", a, b)
		}
	})
}

func TestAnOrderOnItsWayBackHasNoArrival(t *testing.T) {
	at := func(p Point) maybe { return maybe{&p.Lat, &p.Lng} }
	for s, want := range map[contracts.OrderState]float64{
		"ASSIGNED": Remaining(se, masp, consolacao, false), "PICKED_UP": Remaining(se, masp, consolacao, true),
		"FAILED": 0, "RETURNING": 0,
	} {
		got, ok := course{string(s), at(masp), at(consolacao)}.left(se)
		if got != want || ok != (want > 0) {
			t.Errorf("%s: %.0f m, %v", s, got, ok)
		}
	}
	if _, ok := (course{"ASSIGNED", at(masp), maybe{}}).left(se); ok {
		t.Error("an arrival at no known place")
	}
}

func TestAPositionTellsWhenTheOrderArrives(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := b.out()
	f := fix(r.courier, 1)
	f.FixTime, f.ReceivedAt = noon, noon
	b.located(f)
	p, err := b.Position(t.Context(), r.tenant, r.order)
	if err != nil || p.Arrival == nil || p.Arrival.Sub(noon) < 8*time.Minute || p.Arrival.Sub(noon) > 25*time.Minute {
		t.Fatalf("%+v: %v", p, err)
	}
	unknown := newRide()
	b.assigned(unknown, 2)
	b.located(fix(unknown.courier, 1))
	if p, err = b.Position(t.Context(), unknown.tenant, unknown.order); err != nil || p.Arrival != nil {
		t.Errorf("places unknown: %+v: %v", p, err)
	}
}
