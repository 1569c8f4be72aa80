package streets

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// parser reads the form that sao-paulo.txt describes.
type parser struct {
	city  City
	named map[string]int // nodes
	bends map[Point]int
}

// Parse reads a city.
func Parse(r io.Reader) (*City, error) {
	p := parser{named: map[string]int{}, bends: map[Point]int{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if err := p.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return &p.city, nil
}

func (p *parser) line(text string) error {
	kind, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if kind == "" || kind == "#" {
		return nil
	}
	rest = strings.TrimSpace(rest)
	switch kind {
	case "node":
		return p.node(strings.Fields(rest))
	case "label":
		return p.label(strings.Fields(rest))
	case "road":
		class, rest, _ := strings.Cut(rest, " ")
		return p.road(class, rest)
	case "river", "park":
		return p.shape(kind, rest)
	}
	return fmt.Errorf("unknown %q", kind)
}

func (p *parser) node(f []string) error {
	if len(f) != 3 {
		return errors.New("want node NAME LAT LNG")
	}
	at, err := point(f[1] + "," + f[2])
	if err != nil {
		return err
	}
	if _, twice := p.named[f[0]]; twice {
		return fmt.Errorf("node %s stands here twice", f[0])
	}
	p.named[f[0]] = p.add(at)
	return nil
}

func (p *parser) add(at Point) int {
	p.city.nodes = append(p.city.nodes, at)
	p.city.out = append(p.city.out, nil)
	return len(p.city.nodes) - 1
}

func (p *parser) label(f []string) error {
	if len(f) != 4 {
		return errors.New("want label NAME LAT LNG CEP")
	}
	at, err := point(f[1] + "," + f[2])
	p.city.Labels = append(p.city.Labels, Label{strings.ReplaceAll(f[0], "-", " "), at, f[3]})
	return err
}

func (p *parser) road(class, rest string) error {
	name, stops, found := strings.Cut(rest, ": ")
	if !found || !slices.Contains([]string{"motorway", "avenue", "street"}, class) {
		return errors.New("want a road as CLASS Name: and its stops")
	}
	road := Road{Class: class, Name: name}
	before := -1
	for _, s := range strings.Fields(stops) {
		n, err := p.stop(s)
		if err != nil {
			return err
		}
		at := p.city.nodes[n]
		if before >= 0 {
			if err := p.join(before, n); err != nil {
				return fmt.Errorf("%s at %s: %w", name, s, err)
			}
		}
		road.Line, before = append(road.Line, at), n
	}
	p.city.Roads = append(p.city.Roads, road)
	return nil
}

// stop is a node by name, or a bend that only this place has.
func (p *parser) stop(text string) (int, error) {
	if n, ok := p.named[text]; ok {
		return n, nil
	}
	at, err := point(text)
	if err != nil {
		return 0, fmt.Errorf("stop %q is no node and no LAT,LNG", text)
	}
	if n, ok := p.bends[at]; ok {
		return n, nil
	}
	p.bends[at] = p.add(at)
	return p.bends[at], nil
}

func (p *parser) join(a, b int) error {
	c := &p.city
	e := edge{a, b, Distance(c.nodes[a], c.nodes[b]), len(c.Roads)}
	if e.length < 1 {
		return errors.New("two stops in one place")
	}
	c.out[a], c.out[b] = append(c.out[a], len(c.edges)), append(c.out[b], len(c.edges))
	c.edges = append(c.edges, e)
	return nil
}

func (p *parser) shape(kind, rest string) error {
	name, points, found := strings.Cut(rest, ": ")
	if !found {
		return fmt.Errorf("want a %s as Name: and its points", kind)
	}
	s := Shape{Name: name}
	for _, text := range strings.Fields(points) {
		at, err := point(text)
		if err != nil {
			return err
		}
		s.Line = append(s.Line, at)
	}
	if kind == "river" {
		p.city.Rivers = append(p.city.Rivers, s)
	} else {
		p.city.Parks = append(p.city.Parks, s)
	}
	return nil
}

func point(text string) (Point, error) {
	a, b, _ := strings.Cut(text, ",")
	lat, err := strconv.ParseFloat(a, 64)
	lng, err2 := strconv.ParseFloat(b, 64)
	return Point{lat, lng}, errors.Join(err, err2)
}

// check refuses a network that is not all one.
func (p *parser) check() error {
	c := &p.city
	if len(c.edges) == 0 || len(c.Labels) == 0 {
		return errors.New("a city has roads and districts")
	}
	for i := range c.edges {
		if c.Roads[c.edges[i].road].Class != "motorway" {
			c.total += c.edges[i].length
		}
	}
	if c.total == 0 {
		return errors.New("a city has more than motorways")
	}
	reached := c.from([]start{{c.edges[0].a, 0}}, nil)
	for name, n := range p.named {
		if len(c.out[n]) == 0 || reached[n].metres < 0 {
			return fmt.Errorf("node %s (%v) is joined to nothing", name, c.nodes[n])
		}
	}
	return nil
}
