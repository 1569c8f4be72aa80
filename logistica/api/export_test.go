package api

import (
	"net/http"
	"reflect"
	"slices"
)

// Patterns are those of every route that h serves, as its router has them: what
// is not in the OpenAPI document is among them. It reads what net/http does not
// show, and panics where that has changed.
func Patterns(h http.Handler) (patterns []string) {
	index := reflect.ValueOf(h.(*service).mux).Elem().FieldByName("index")
	add := func(list reflect.Value) {
		for i := range list.Len() {
			patterns = append(patterns, list.Index(i).Elem().FieldByName("str").String())
		}
	}
	add(index.FieldByName("multis"))
	for all := index.FieldByName("segments").MapRange(); all.Next(); {
		add(all.Value())
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}
