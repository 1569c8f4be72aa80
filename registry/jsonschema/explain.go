package jsonschema

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// explain says in a line what is wrong with a schema, and where.
func explain(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var absent *jsonschema.LoadURLError
	var pointer *jsonschema.JSONPointerNotFoundError
	switch {
	case errors.As(err, &invalid):
		if leaf := firstLeaf(invalid); leaf != nil {
			return fmt.Errorf("at %s: %.300s", place(pointerTo(leaf.InstanceLocation)),
				leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
		}
	case errors.As(err, &absent):
		name := strings.TrimPrefix(absent.URL, strings.TrimSuffix(home, "schema"))
		return fmt.Errorf("$ref %.200q leads nowhere: nothing is fetched; register what it means and name it in references", name)
	case errors.As(err, &pointer):
		return fmt.Errorf("$ref %.200q leads nowhere: the schema has no such place", strings.TrimPrefix(pointer.URL, home))
	}
	return fmt.Errorf("%.300s", strings.ReplaceAll(err.Error(), home, ""))
}

func firstLeaf(invalid *jsonschema.SchemaValidationError) *jsonschema.ValidationError {
	all := leaves(invalid)
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// leaves are the places at fault, by their whole path, the first of them as deep as any: where
// several ways of saying a thing fail, the one that was meant gets furthest.
func leaves(invalid *jsonschema.SchemaValidationError) []*jsonschema.ValidationError {
	var top *jsonschema.ValidationError
	if !errors.As(invalid.Err, &top) {
		return nil
	}
	var out []*jsonschema.ValidationError
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			walk(c)
		}
		if len(e.Causes) > 0 {
			return
		}
		out = append(out, e)
		if last := len(out) - 1; len(e.InstanceLocation) > len(out[0].InstanceLocation) {
			out[0], out[last] = out[last], out[0]
		}
	}
	walk(top)
	if _, at, _ := strings.Cut(invalid.URL, "#"); at != "" { // only a part of the schema was looked at
		for _, e := range out {
			e.InstanceLocation = append(steps(at), e.InstanceLocation...)
		}
	}
	return out
}

// steps are the parts of a JSON pointer that stands in an address.
func steps(fragment string) []string {
	out := strings.Split(strings.TrimPrefix(fragment, "/"), "/")
	for i, s := range out {
		if plain, err := url.PathUnescape(s); err == nil {
			s = plain
		}
		out[i] = unescape(s)
	}
	return out
}

func unescape(step string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(step) }

func pointerTo(steps []string) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(step(s))
	}
	return b.String()
}

// step is a part of a path, as JSON pointers write it.
func step(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// place is a path in words.
func place(path string) string {
	if path == "" {
		return "the top of the schema"
	}
	return fmt.Sprintf("%.300q", "#"+path)
}
