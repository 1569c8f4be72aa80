package jsonschema

import (
	"fmt"
	"slices"
	"strings"
)

// wayLimit bounds, with the places, the references to places that are no part of
// a draft: for each of them the library copies what it knows of the others.
const wayLimit = 2_000_000

func (s *shelf) byways(places int) error {
	ways := map[string]bool{}
	gather(ways, s.given[home], highways(s.given[home]))
	for _, doc := range s.named {
		gather(ways, doc, highways(doc))
	}
	if len(ways)*places > wayLimit {
		return fmt.Errorf("it has %d references to places that its draft has no keyword for, of %d; put what they refer to under definitions, or $defs from 2019-09 on",
			len(ways), places)
	}
	return nil
}

// highways are where a draft has what is referred to.
func highways(doc any) []string {
	o, _ := doc.(map[string]any)
	if draft, _ := o["$schema"].(string); strings.Contains(draft, "/draft/20") {
		return []string{"definitions", "$defs"}
	}
	return []string{"definitions"}
}

func gather(ways map[string]bool, v any, known []string) {
	switch v := v.(type) {
	case map[string]any:
		ref, _ := v["$ref"].(string)
		if _, at, _ := strings.Cut(ref, "#/"); at != "" {
			first, name, _ := strings.Cut(at, "/")
			if !slices.Contains(known, first) || strings.Contains(name, "/") {
				ways[ref] = true
			}
		}
		for _, e := range v {
			gather(ways, e, known)
		}
	case []any:
		for _, e := range v {
			gather(ways, e, known)
		}
	}
}
