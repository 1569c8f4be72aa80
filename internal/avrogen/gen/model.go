package gen

import (
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// model is a folder of schemas as Go will see it.
type model struct {
	sources   []*source
	types     map[string]*named // by full Avro name
	order     []*named          // as they are defined
	contracts []*contract
	goNames   map[string]string // package-level Go name -> the file it comes from
}

// named is a record or an enum.
type named struct {
	full, space string // Avro name with its namespace, and the namespace alone
	goName      string
	doc         string
	source      *source // the one file it is written into
	node        *node
	fields      []field  // of a record
	symbols     []symbol // of an enum
}

type symbol struct{ goName, avro string }

type field struct {
	name, goName string
	goType       string
	nullable     bool
	doc          string
}

func newModel(sources []*source) (*model, error) {
	m := &model{sources: sources, types: map[string]*named{}, goNames: map[string]string{}}
	steps := []func() error{m.collect, m.buildTypes, m.buildContracts}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// collect finds every definition first: a file may use a type of another one
// that comes later.
func (m *model) collect() error {
	for _, s := range m.sources {
		err := walk(s.root, "", func(n *node, space string) error { return m.define(s, n, space) })
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (m *model) define(s *source, n *node, enclosing string) error {
	name, space := fullName(n, enclosing)
	t := &named{
		full: name, space: space, goName: exported(name[strings.LastIndexByte(name, '.')+1:]),
		doc: n.str("doc"), source: s, node: n,
	}
	if prior, ok := m.types[name]; ok {
		return sameDefinition(prior, t)
	}
	if n != s.root {
		if err := noAttributes(n, name); err != nil {
			return err
		}
	}
	m.types[name], m.order = t, append(m.order, t)
	return m.claim(t.goName, s)
}

// claim keeps two things from taking one Go name.
func (m *model) claim(name string, s *source) error {
	if !token.IsIdentifier(name) || !token.IsExported(name) {
		return fmt.Errorf("%q makes no Go name", name)
	}
	if prior, ok := m.goNames[name]; ok {
		return fmt.Errorf("the Go name %s is taken by %s", name, prior)
	}
	m.goNames[name] = s.name
	return nil
}

func (m *model) buildTypes() error {
	for _, name := range []string{"All", "New"} {
		if prior, ok := m.goNames[name]; ok {
			return fmt.Errorf("%s: the Go name %s is taken by %s", prior, name, index)
		}
	}
	var errs []error
	for _, t := range m.order {
		build := m.buildRecord
		if t.node.str("type") == "enum" {
			build = m.buildEnum
		}
		if err := build(t); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.source.name, err))
		}
	}
	return errors.Join(errs...)
}

// buildEnum insists on a default: without one, a reader of today's version
// fails on a symbol that is added tomorrow.
func (m *model) buildEnum(t *named) error {
	for _, n := range itemsOf(t.node.get("symbols")) {
		avro, _ := n.text()
		s := symbol{t.goName + goName(avro), avro}
		if err := m.claim(s.goName, t.source); err != nil {
			return fmt.Errorf("enum %s: %w", t.full, err)
		}
		t.symbols = append(t.symbols, s)
	}
	def := t.node.str("default")
	if !slices.ContainsFunc(t.symbols, func(s symbol) bool { return s.avro == def }) {
		return fmt.Errorf("enum %s: needs a default among its symbols", t.full)
	}
	return nil
}

func (m *model) buildRecord(t *named) error {
	taken := map[string]string{}
	for _, n := range itemsOf(t.node.get("fields")) {
		f := field{name: n.str("name"), goName: goName(n.str("name")), doc: n.str("doc")}
		where := t.full + "." + f.name
		if !token.IsIdentifier(f.goName) || !token.IsExported(f.goName) {
			return fmt.Errorf("%s: makes no Go name", where)
		}
		if prior, ok := taken[f.goName]; ok {
			return fmt.Errorf("%s: the Go name %s is taken by %s", where, f.goName, prior)
		}
		taken[f.goName] = f.name
		var err error
		if f.goType, f.nullable, err = m.fieldType(n.get("type"), t.space); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		t.fields = append(t.fields, f)
	}
	return nil
}

func itemsOf(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.items
}

func exported(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
