package jsonschema

import (
	"fmt"
	"strings"
)

// wayLimit bounds, with the places, the references to places that are no part of
// a draft: for each of them the library copies what it knows of the others.
const wayLimit = 2_000_000

func (s *shelf) byways(places int) error {
	ways := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				if _, at, _ := strings.Cut(ref, "#/"); at != "" && (strings.Count(at, "/") != 1 || !strings.HasPrefix(at, "definitions/")) {
					ways[ref] = true
				}
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(s.given[home])
	for _, doc := range s.named {
		walk(doc)
	}
	if len(ways)*places > wayLimit {
		return fmt.Errorf("it has %d references to places of %d that are not under definitions; put what they refer to there", len(ways), places)
	}
	return nil
}
