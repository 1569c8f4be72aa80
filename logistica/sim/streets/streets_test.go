package streets

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func city(t testing.TB) *City {
	t.Helper()
	c, err := SaoPaulo()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func drawn(c *City, t *rapid.T, label string) Place {
	return c.Draw(rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, label))))
}

func TestTheCityIsThere(t *testing.T) {
	c := city(t)
	if len(c.Roads) < 100 || c.total < 150_000 || len(c.Labels) < 30 {
		t.Errorf("%d roads, %.0f km, %d districts", len(c.Roads), c.total/1000, len(c.Labels))
	}
	for _, p := range c.nodes {
		if Distance(p, Point{-23.57, -46.65}) > 15_000 {
			t.Errorf("%v is out of town", p)
		}
	}
	for i := range c.edges {
		if e := &c.edges[i]; e.length > 3500 {
			t.Errorf("%.0f m of %s without a bend", e.length, c.Roads[e.road].Name)
		}
	}
}

// Distances that anybody can look up.
func TestKnownWays(t *testing.T) {
	c := city(t)
	for _, w := range []struct {
		name     string
		a, b     Point
		min, max float64
	}{
		{"along Paulista", Point{-23.5553, -46.6625}, Point{-23.5711, -46.6455}, 2300, 2900},
		{"from the museum to the park", Point{-23.5614, -46.6561}, Point{-23.5868, -46.6545}, 3000, 5500},
		{"from the cathedral to Pinheiros", Point{-23.5503, -46.6333}, Point{-23.5668, -46.6938}, 6500, 9500},
	} {
		a, _ := c.Nearest(w.a)
		b, _ := c.Nearest(w.b)
		if m := c.Route(a, b).Length(); m < w.min || m > w.max {
			t.Errorf("%s it is %.0f m", w.name, m)
		}
	}
}

func TestARouteStaysOnTheNetworkAndEndsWhereItShould(t *testing.T) {
	c := city(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawn(c, t, "a"), drawn(c, t, "b")
		r := c.Route(a, b)
		if from, _ := r.At(0); Distance(from, c.Point(a)) > 0.01 {
			t.Fatalf("begins %.2f m off", Distance(from, c.Point(a)))
		}
		if to, _ := r.At(r.Length()); Distance(to, c.Point(b)) > 0.01 {
			t.Fatalf("ends %.2f m off", Distance(to, c.Point(b)))
		}
		if r.Length() < Distance(c.Point(a), c.Point(b))-0.01 {
			t.Fatalf("%.1f m is shorter than the straight line", r.Length())
		}
		m := rapid.Float64Range(0, r.Length()).Draw(t, "metres")
		at, look := r.At(m)
		if _, off := c.Nearest(at); off > 0.05 {
			t.Fatalf("%.2f m off the road after %.1f m", off, m)
		}
		if look < 0 || look >= 360 || math.IsNaN(look) {
			t.Fatalf("looks to %f", look)
		}
	})
}

func TestWhatIsRiddenIsTheDistance(t *testing.T) {
	c := city(t)
	rapid.Check(t, func(t *rapid.T) {
		r := c.Route(drawn(c, t, "a"), drawn(c, t, "b"))
		a := rapid.Float64Range(0, r.Length()).Draw(t, "from")
		b := rapid.Float64Range(a, min(r.Length(), a+200)).Draw(t, "to")
		// Around corners the straight line is shorter, never longer.
		p, _ := r.At(a)
		q, _ := r.At(b)
		if d := Distance(p, q); d > b-a+0.01 {
			t.Fatalf("%.2f m in %.2f m", d, b-a)
		}
	})
}

func TestNoWayIsShorterBySomeDetour(t *testing.T) {
	c := city(t)
	rapid.Check(t, func(t *rapid.T) {
		a, b, via := drawn(c, t, "a"), drawn(c, t, "b"), drawn(c, t, "via")
		if direct, round := c.Route(a, b).Length(), c.Route(a, via).Length()+c.Route(via, b).Length(); direct > round+0.01 {
			t.Fatalf("%.1f m, and %.1f m by way of another place", direct, round)
		}
		if there, back := c.Route(a, b).Length(), c.Route(b, a).Length(); math.Abs(there-back) > 0.01 {
			t.Fatalf("%.1f m there, %.1f m back", there, back)
		}
	})
}

func TestTheNearestPlaceOfAPlaceIsItself(t *testing.T) {
	c := city(t)
	rapid.Check(t, func(t *rapid.T) {
		p := c.Point(drawn(c, t, "place"))
		got, off := c.Nearest(p)
		if off > 0.01 || Distance(c.Point(got), p) > 0.02 {
			t.Fatalf("%.3f m off", off)
		}
	})
}

func TestNobodyLivesOnAMotorway(t *testing.T) {
	c, r := city(t), rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		if p := c.Draw(r); c.Road(p).Class == "motorway" {
			t.Fatalf("on %s", c.Road(p).Name)
		}
	}
	at := Point{-23.5614, -46.6561}
	for range 100 {
		if p := c.DrawNear(r, at, 3000); Distance(at, c.Point(p)) > 4000 {
			t.Errorf("%.0f m away", Distance(at, c.Point(p)))
		}
	}
}

func TestWhatIsNoCityIsRefused(t *testing.T) {
	const good = "node a -23 -46\nnode b -23.01 -46\nroad avenue A: a b\nlabel L -23 -46 010\n"
	if _, err := Parse(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":         "",
		"an island":     good + "node c -23 -47\nnode d -23 -47.1\nroad avenue B: c d\n",
		"a lone node":   good + "node c -23 -47\n",
		"a name twice":  good + "node a -23 -47\n",
		"an odd class":  good + "road path B: a b\n",
		"no such stop":  good + "road avenue B: a x\n",
		"no way at all": good + "road avenue B: a a\n",
		"odd words":     good + "hill H -23 -46\n",
		"no numbers":    good + "node c x y\n",
		"motorways":     strings.Replace(good, "avenue", "motorway", 1),
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

var update = flag.Bool("update", false, "write the map that the pages show")

// The ground of the pages' map is the network the couriers ride on. After a
// change: go test ./logistica/sim/streets -update.
func TestThePagesShowThisNetwork(t *testing.T) {
	want, err := city(t).GeoJSON()
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Features []any }
	if err := json.Unmarshal(want, &read); err != nil || len(read.Features) < 150 {
		t.Fatalf("%d features: %v", len(read.Features), err)
	}
	if len(want) > 400<<10 {
		t.Errorf("%d bytes", len(want))
	}
	path := filepath.Join("..", "..", "web", "assets", "map", "sao-paulo.geojson")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not this network (%v): go test ./logistica/sim/streets -update", path, err)
	}
}
