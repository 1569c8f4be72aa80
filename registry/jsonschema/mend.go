package jsonschema

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mendLimit bounds the rounds in which a kept schema is mended.
const mendLimit = 8

// mend leaves out of a kept schema what err complains of, and says whether it
// found that.
func mend(s *shelf, err error) bool {
	var invalid *jsonschema.SchemaValidationError
	var absent *jsonschema.LoadURLError
	switch {
	case errors.As(err, &invalid):
		url, _, _ := strings.Cut(invalid.URL, "#")
		doc, changed := s.given[url], false
		for _, leaf := range leaves(invalid) {
			changed = drop(doc, leaf.InstanceLocation) || changed
		}
		return changed
	case errors.As(err, &absent):
		changed := false
		for _, doc := range s.given {
			changed = forget(doc, absent.URL) || changed
		}
		return changed
	}
	return false
}

// drop takes out the value at a path, or the whole list that it is in: what is
// left of a list would mean something else.
func drop(v any, path []string) bool {
	in, key := map[string]any(nil), ""
	for i, name := range path {
		switch at := v.(type) {
		case map[string]any:
			in, key, v = at, name, at[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(at) {
				return false
			}
			if v = at[n]; i == len(path)-1 {
				break // in and key lead to the list
			}
		default:
			return false
		}
	}
	if _, there := in[key]; !there {
		return false
	}
	delete(in, key)
	return true
}

// forget lets whatever refers to an address take everything.
func forget(v any, url string) bool {
	changed := false
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			ref, _, _ = strings.Cut(ref, "#")
			if ref != "" && (ref == url || strings.HasSuffix(url, "/"+strings.TrimPrefix(ref, "./"))) {
				clear(v)
				return true
			}
		}
		for _, e := range v {
			changed = forget(e, url) || changed
		}
	case []any:
		changed = slices.ContainsFunc(v, func(e any) bool { return forget(e, url) }) || changed
	}
	return changed
}
