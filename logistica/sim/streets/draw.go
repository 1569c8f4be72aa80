package streets

import (
	"encoding/json"
	"fmt"
	"math"
)

// GeoJSON is the city's map, a feature a line: roads with class and name, rivers,
// parks, and districts as points. Coordinates are longitude, latitude, as RFC
// 7946 has them.
func (c *City) GeoJSON() ([]byte, error) {
	out := []byte("{\"type\":\"FeatureCollection\",\"features\":[\n")
	add := func(kind, class, name, geometry string, coordinates any) error {
		f := map[string]any{
			"type":       "Feature",
			"properties": map[string]string{"kind": kind, "name": name},
			"geometry":   map[string]any{"type": geometry, "coordinates": coordinates},
		}
		if class != "" {
			f["properties"] = map[string]string{"kind": kind, "class": class, "name": name}
		}
		b, err := json.Marshal(f)
		if len(out) > 0 && out[len(out)-2] == '}' {
			out = append(out[:len(out)-1], ",\n"...)
		}
		out = append(append(out, b...), '\n')
		return err
	}
	for _, s := range c.Parks {
		ring := append(pairs(s.Line), pair(s.Line[0]))
		if err := add("park", "", s.Name, "Polygon", [][][2]float64{ring}); err != nil {
			return nil, err
		}
	}
	for _, s := range c.Rivers {
		if err := add("river", "", s.Name, "LineString", pairs(s.Line)); err != nil {
			return nil, err
		}
	}
	for _, r := range c.Roads {
		if err := add("road", r.Class, r.Name, "LineString", pairs(r.Line)); err != nil {
			return nil, err
		}
	}
	for _, l := range c.Labels {
		if err := add("district", "", l.Name, "Point", pair(l.At)); err != nil {
			return nil, fmt.Errorf("draw %s: %w", l.Name, err)
		}
	}
	return append(out, "]}\n"...), nil
}

func pairs(line []Point) [][2]float64 {
	out := make([][2]float64, len(line), len(line)+1)
	for i, p := range line {
		out[i] = pair(p)
	}
	return out
}

func pair(p Point) [2]float64 {
	return [2]float64{math.Round(p.Lng*1e5) / 1e5, math.Round(p.Lat*1e5) / 1e5}
}
