package streets

import (
	"container/heap"
	"math"
	"sort"
)

// Route is a way on the network.
type Route struct {
	points []Point
	at     []float64 // metres from the start, of each point
}

// Length is in metres.
func (r Route) Length() float64 { return r.at[len(r.at)-1] }

// At is where one is after so many metres, and where one looks, in degrees
// clockwise from north. Before the start it is the start, past the end the end.
func (r Route) At(metres float64) (Point, float64) {
	i := sort.SearchFloat64s(r.at, metres)
	i = min(max(i, 1), len(r.at)-1)
	a, b := r.points[i-1], r.points[i]
	length := r.at[i] - r.at[i-1]
	if length == 0 {
		return b, heading(a, b)
	}
	return between(a, b, min(max((metres-r.at[i-1])/length, 0), 1)), heading(a, b)
}

// Route is the shortest way from a to b.
func (c *City) Route(a, b Place) Route {
	ends := map[int]float64{}
	to := &c.edges[b.edge]
	ends[to.a], ends[to.b] = b.along, to.length-b.along
	if to.a == to.b {
		ends[to.a] = min(b.along, to.length-b.along)
	}
	from := &c.edges[a.edge]
	seen := c.from([]start{{from.a, a.along}, {from.b, from.length - a.along}}, ends)

	last, shortest := -1, math.Inf(1)
	for n, rest := range ends {
		if m := seen[n].metres; m >= 0 && (m+rest < shortest || m+rest == shortest && n < last) {
			last, shortest = n, m+rest
		}
	}
	if a.edge == b.edge && math.Abs(a.along-b.along) <= shortest {
		return along([]Point{c.Point(a), c.Point(b)})
	}
	back := []Point{c.Point(b)}
	for n := last; n >= 0; n = seen[n].before {
		back = append(back, c.nodes[n])
	}
	back = append(back, c.Point(a))
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return along(back)
}

func along(points []Point) Route {
	r := Route{points: points, at: make([]float64, len(points))}
	for i := 1; i < len(points); i++ {
		r.at[i] = r.at[i-1] + Distance(points[i-1], points[i])
	}
	return r
}

// start is a node that a search begins at, so many metres from its start.
type start struct {
	node   int
	metres float64
}

// reach is how a node was reached: metres is -1 where it was not.
type reach struct {
	metres float64
	before int // -1 at a start
}

// from searches by Dijkstra until all ends are reached, or everything where
// there are none.
func (c *City) from(starts []start, ends map[int]float64) []reach {
	seen := make([]reach, len(c.nodes))
	for i := range seen {
		seen[i] = reach{-1, -1}
	}
	var q queue
	for _, s := range starts {
		heap.Push(&q, step{s.node, -1, s.metres})
	}
	left := len(ends)
	for q.Len() > 0 {
		s := heap.Pop(&q).(step) //nolint:forcetypeassert // nothing else is pushed
		if seen[s.node].metres >= 0 {
			continue
		}
		seen[s.node] = reach{s.metres, s.before}
		if _, end := ends[s.node]; end {
			if left--; left == 0 {
				break
			}
		}
		for _, i := range c.out[s.node] {
			e := &c.edges[i]
			next := e.a + e.b - s.node
			if seen[next].metres < 0 {
				heap.Push(&q, step{next, s.node, s.metres + e.length})
			}
		}
	}
	return seen
}

type step struct {
	node, before int
	metres       float64
}

// queue is a heap of steps, the nearest first.
type queue []step

func (q queue) Len() int { return len(q) }

// Less breaks ties by node, so that the same question has the same answer.
func (q queue) Less(i, j int) bool {
	if q[i].metres != q[j].metres {
		return q[i].metres < q[j].metres
	}
	return q[i].node < q[j].node
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements [heap.Interface].
func (q *queue) Push(x any) { *q = append(*q, x.(step)) } //nolint:forcetypeassert // nothing else is pushed

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	old := *q
	s := old[len(old)-1]
	*q = old[:len(old)-1]
	return s
}
