// Package streets is a coarse map of central São Paulo to ride on: its main
// roads as a network, and ways through it.
//
// Promise: every place is on a road, any two are joined, a route is the shortest
// there is on the network, and the same is answered to the same question.
//
// Limits: see sao-paulo.txt: a hand's breadth of facts and not a map. Roads have
// no direction, no level and no speed.
package streets

import (
	_ "embed"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
)

//go:embed sao-paulo.txt
var saoPaulo string

// SaoPaulo is the city. It is read when first asked for, and shared.
var SaoPaulo = sync.OnceValues(func() (*City, error) { return Parse(strings.NewReader(saoPaulo)) })

// Point is a place on earth, in degrees.
type Point struct{ Lat, Lng float64 }

// Metres a degree of latitude and, at the city's, of longitude is long. Over
// thirty kilometres a flat earth is right to a thousandth.
const perLat = 110_770.0

var perLng = 111_320 * math.Cos(23.57*math.Pi/180)

// Distance is the straight line's, in metres.
func Distance(a, b Point) float64 {
	return math.Hypot((b.Lat-a.Lat)*perLat, (b.Lng-a.Lng)*perLng)
}

// Offset is the point so many metres to the north and east of p.
func (p Point) Offset(north, east float64) Point {
	return Point{p.Lat + north/perLat, p.Lng + east/perLng}
}

// between is the point at a fraction of the way from a to b.
func between(a, b Point, fraction float64) Point {
	return Point{a.Lat + (b.Lat-a.Lat)*fraction, a.Lng + (b.Lng-a.Lng)*fraction}
}

// heading from a to b, in degrees clockwise from north.
func heading(a, b Point) float64 {
	h := math.Atan2((b.Lng-a.Lng)*perLng, (b.Lat-a.Lat)*perLat) * 180 / math.Pi
	return math.Mod(h+360, 360)
}

// City is a network of roads, and what else is on its map. It does not change.
type City struct {
	Roads  []Road
	Rivers []Shape
	Parks  []Shape
	Labels []Label

	nodes []Point
	edges []edge
	out   [][]int // by node, the edges that touch it
	total float64 // metres of road that somebody may live at
}

// Road is a road of a class: motorway, avenue or street.
type Road struct {
	Class, Name string
	Line        []Point
}

// Shape is a river's line or a park's outline.
type Shape struct {
	Name string
	Line []Point
}

// Label names a district.
type Label struct {
	Name string
	At   Point
	CEP  string // the first three digits of its postal codes
}

// edge is a straight piece of a road between two nodes.
type edge struct {
	a, b   int
	length float64
	road   int
}

// Place is a place on a road: so many metres along a piece of it.
type Place struct {
	edge  int
	along float64
}

// Point is where the place is.
func (c *City) Point(p Place) Point {
	e := &c.edges[p.edge]
	return between(c.nodes[e.a], c.nodes[e.b], p.along/e.length)
}

// Road is the road the place is on.
func (c *City) Road(p Place) *Road { return &c.Roads[c.edges[p.edge].road] }

// District is the nearest one's label.
func (c *City) District(at Point) *Label {
	best, nearest := 0, math.Inf(1)
	for i := range c.Labels {
		if d := Distance(at, c.Labels[i].At); d < nearest {
			best, nearest = i, d
		}
	}
	return &c.Labels[best]
}

// Nearest is the place on the network that is nearest to a point, and how far
// away it is, in metres.
func (c *City) Nearest(at Point) (best Place, metres float64) {
	metres = math.Inf(1)
	for i := range c.edges {
		e := &c.edges[i]
		a, b := c.nodes[e.a], c.nodes[e.b]
		north, east := (b.Lat-a.Lat)*perLat, (b.Lng-a.Lng)*perLng
		along := ((at.Lat-a.Lat)*perLat*north + (at.Lng-a.Lng)*perLng*east) / e.length
		p := Place{i, min(max(along, 0), e.length)}
		if d := Distance(at, c.Point(p)); d < metres {
			best, metres = p, d
		}
	}
	return best, metres
}

// Draw picks a place that somebody may live at, any metre as likely as any
// other: not on a motorway.
func (c *City) Draw(r *rand.Rand) Place {
	at := r.Float64() * c.total
	last := 0
	for i := range c.edges {
		if c.Roads[c.edges[i].road].Class == "motorway" {
			continue
		}
		last = i
		if at < c.edges[i].length {
			return Place{i, at}
		}
		at -= c.edges[i].length
	}
	return Place{last, c.edges[last].length}
}

// DrawNear picks a place within so many metres of at, as the crow flies, or the
// nearest of many that were drawn.
func (c *City) DrawNear(r *rand.Rand, at Point, metres float64) Place {
	best, nearest := Place{}, math.Inf(1)
	for range 64 {
		p := c.Draw(r)
		d := Distance(at, c.Point(p))
		if d <= metres {
			return p
		}
		if d < nearest {
			best, nearest = p, d
		}
	}
	return best
}
