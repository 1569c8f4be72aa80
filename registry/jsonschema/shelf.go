package jsonschema

import (
	"errors"
	"strings"
)

// home is the address of a schema that gives itself none. What it refers to
// stands beside it.
const home = "registry:///schema"

// shelf are the texts that a schema may refer to, by name and by the address
// they give themselves.
type shelf struct {
	named, addressed map[string]any
	folders          map[string]bool // that names are relative to
	given            map[string]any  // by the address that was asked for
}

func newShelf(root any) *shelf {
	s := &shelf{map[string]any{}, map[string]any{}, map[string]bool{}, map[string]any{home: root}}
	s.beside(home)
	s.beside(address(root))
	return s
}

func (s *shelf) put(name string, doc any) {
	name = strings.TrimPrefix(name, "./")
	if _, there := s.named[name]; there {
		return // the first holds, as in Confluent's registry
	}
	s.named[name] = doc
	s.beside(name)
	if a := address(doc); a != "" {
		s.addressed[a] = doc
		s.beside(a)
	}
}

func (s *shelf) beside(address string) {
	for i := strings.LastIndexByte(address, '/'); i >= 0; i = strings.LastIndexByte(address[:i], '/') {
		s.folders[address[:i+1]] = true
	}
}

// address is what a schema calls itself, without a fragment.
func address(doc any) string {
	o, _ := doc.(map[string]any)
	for _, key := range []string{"$id", "id"} {
		if id, ok := o[key].(string); ok {
			id, _, _ = strings.Cut(id, "#")
			return id
		}
	}
	return ""
}

var errNotGiven = errors.New("no reference has that name")

// Load gives a text to the library, and never goes anywhere for it.
func (s *shelf) Load(url string) (any, error) {
	doc, ok := s.find(url)
	if !ok {
		return nil, errNotGiven
	}
	s.given[url] = doc
	return doc, nil
}

// find looks for the whole address, then for the longest name relative to a
// folder that schemas are in.
func (s *shelf) find(url string) (any, bool) {
	if doc, ok := s.named[url]; ok {
		return doc, true
	}
	if doc, ok := s.addressed[url]; ok {
		return doc, true
	}
	for i := range len(url) {
		if url[i] != '/' || !s.folders[url[:i+1]] {
			continue
		}
		if doc, ok := s.named[url[i+1:]]; ok {
			return doc, true
		}
	}
	return nil, false
}
