package jsonschema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Text is a schema that others refer to by its name.
type Text struct{ Name, Text string }

// Schema is one that was understood, with all it refers to. It is safe for use
// by several goroutines.
type Schema struct {
	root *jsonschema.Schema
	text string
}

// Parse reads a schema. The texts it refers to come with the names that it and
// they call them by; names that none of them uses do no harm. Of a schema that
// is kept already, what a draft does not allow is left out, and a reference
// that leads nowhere takes everything: an older registry may have taken it.
func Parse(text string, references []Text, kept bool) (*Schema, error) {
	size := len(text)
	for _, r := range references {
		size += len(r.Text)
	}
	if size > sizeLimit {
		return nil, fmt.Errorf("it and what it refers to are larger than %d bytes; refer to less", sizeLimit)
	}
	places := 0
	root, err := document(text, &places)
	if err != nil {
		return nil, err
	}
	s := newShelf(root)
	for _, r := range references {
		doc, err := document(r.Text, &places)
		if err != nil {
			return nil, fmt.Errorf("reference %q: %w", r.Name, err)
		}
		s.put(r.Name, doc)
	}
	if err := s.byways(places); err != nil {
		return nil, err
	}
	compiled, err := compile(root, s)
	for round := 0; kept && err != nil && round < mendLimit && mend(s, err); round++ {
		compiled, err = compile(root, s)
	}
	if err != nil {
		return nil, explain(err)
	}
	return &Schema{compiled, text}, nil
}

// Normal is the schema's text in normal form.
func (s *Schema) Normal() (string, error) { return Normal(s.text) }

func document(text string, places *int) (any, error) {
	v, err := decode(text)
	if err != nil {
		return nil, err
	}
	doc, err := plain(v, places)
	if err != nil {
		return nil, err
	}
	switch doc := doc.(type) {
	case bool:
		return doc, nil
	case map[string]any:
		ownDraft(doc)
		oneDefinitions(doc)
		return doc, nil
	}
	return nil, errors.New("a JSON Schema is an object, or true or false")
}

// ownDraft leaves out the name of a dialect that is none of the drafts.
func ownDraft(doc map[string]any) {
	name, ok := doc["$schema"].(string)
	if !ok {
		return
	}
	_, path, _ := strings.Cut(strings.TrimSuffix(name, "#"), "://json-schema.org/")
	switch path {
	case "draft-04/schema", "draft-06/schema", "draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema":
	default:
		delete(doc, "$schema")
	}
}

// oneDefinitions makes what stands under definitions be found under $defs as
// well: generators of schemas mix the two, and Confluent's registry lets them.
func oneDefinitions(doc map[string]any) {
	old, _ := doc["definitions"].(map[string]any)
	defs, ok := doc["$defs"].(map[string]any)
	if len(old) == 0 || !ok && doc["$defs"] != nil {
		return
	}
	if !ok {
		defs = make(map[string]any, len(old))
		doc["$defs"] = defs
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25")
	for name := range old {
		if _, there := defs[name]; !there {
			defs[name] = map[string]any{"$ref": "#/definitions/" + escape.Replace(name)}
		}
	}
}

func compile(root any, s *shelf) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseLoader(s)
	c.UseRegexpEngine(compilePattern)
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: home + "/raw", Compile: keepRaw})
	c.AssertVocabs()
	if err := c.AddResource(home, root); err != nil {
		return nil, err
	}
	return c.Compile(home)
}

// raw is the object that a place of a schema was read from: some of what it
// says has no field in the library.
type raw map[string]any

func (raw) Validate(*jsonschema.ValidatorContext, any) {}

func keepRaw(_ *jsonschema.CompilerContext, o map[string]any) (jsonschema.SchemaExt, error) {
	return raw(o), nil
}

func rawOf(s *jsonschema.Schema) raw {
	for _, e := range s.Extensions {
		if r, ok := e.(raw); ok {
			return r
		}
	}
	return nil
}
