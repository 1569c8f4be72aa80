package jsonschema

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// mendLimit bounds the rounds in which a kept schema is mended.
const mendLimit = 16

// mend leaves out of a kept schema what err complains of, and says whether it
// found that.
func mend(s *shelf, err error) bool {
	var invalid *jsonschema.SchemaValidationError
	var absent *jsonschema.LoadURLError
	switch {
	case errors.As(err, &invalid):
		url, _, _ := strings.Cut(invalid.URL, "#")
		return leaveOut(s.given[url], leaves(invalid))
	case errors.As(err, &absent):
		changed := false
		for _, doc := range s.given {
			changed = forget(doc, absent.URL) || changed
		}
		return changed
	}
	return false
}

// leaveOut takes out the deepest of what is at fault: the places around it may
// be so for its sake only.
func leaveOut(doc any, faults []*jsonschema.ValidationError) bool {
	done := map[string]bool{}
	for _, repeats := range []bool{true, false} {
		for _, f := range faults {
			_, repeated := f.ErrorKind.(*kind.UniqueItems)
			at := pointerTo(f.InstanceLocation)
			if repeated == repeats && !done[at] && len(f.InstanceLocation) == len(faults[0].InstanceLocation) {
				done[at] = drop(doc, f.InstanceLocation, repeats)
			}
		}
	}
	return slices.Contains(slices.Collect(maps.Values(done)), true)
}

// drop takes out the value at a path, or the whole list that it is in: what is
// left of a list would mean something else. Of a list that repeats itself it
// takes out the repetitions.
func drop(v any, path []string, repeats bool) bool {
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
	if list, ok := in[key].([]any); ok && repeats {
		in[key] = once(list)
		return len(once(list)) < len(list)
	}
	delete(in, key)
	return true
}

func once(list []any) (out []any) {
	seen := map[string]bool{}
	for _, v := range list {
		if k := valueKey(v); !seen[k] {
			seen[k] = true
			out = append(out, v)
		}
	}
	return out
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
