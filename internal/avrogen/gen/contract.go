package gen

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/event"
)

// attributes are what a contract's record says to us; the registry does not
// see them.
var attributes = []string{"topic", "source", "key", "sequence"}

func isAttribute(name string) bool { return slices.Contains(attributes, name) }

// contract is a record that travels on a topic.
type contract struct {
	*named
	topic, uri string
	key        field
	sequence   *field // nil if the aggregate has no version
	schema     string
}

func (c *contract) subject() string { return c.topic + "-" + c.full }

func noAttributes(n *node, name string) error {
	for _, a := range attributes {
		if n.get(a) != nil {
			return fmt.Errorf("%s: attribute %q belongs to the record that is the file", name, a)
		}
	}
	return nil
}

func (m *model) buildContracts() error {
	var errs []error
	for _, s := range m.sources {
		if err := m.buildContract(s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	slices.SortFunc(m.contracts, func(a, b *contract) int { return cmp.Compare(a.subject(), b.subject()) })
	return errors.Join(errs...)
}

// buildContract also checks the whole schema as its readers will parse it.
func (m *model) buildContract(s *source) error {
	full, _ := fullName(s.root, "")
	x := &expander{types: m.types, done: map[string]bool{}}
	c := &contract{named: m.types[full], schema: x.expand(s.root, "").compact()}
	if !slices.ContainsFunc(s.root.members, func(m member) bool { return isAttribute(m.name) }) {
		if _, err := avro.Parse(c.schema); err != nil {
			return fmt.Errorf("%s: %w", full, err)
		}
		return nil
	}
	if s.root.str("type") != "record" {
		return noAttributes(s.root, full)
	}
	if err := c.readAttributes(s.root); err != nil {
		return err
	}
	if _, err := event.NewContract(c.topic, c.uri, c.schema); err != nil {
		return fmt.Errorf("%s: %w", full, err)
	}
	m.contracts = append(m.contracts, c)
	return nil
}

// topicForm is what brokers take.
var topicForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

func (c *contract) readAttributes(n *node) (err error) {
	if c.topic, err = attribute(n, "topic"); err != nil {
		return err
	}
	if !topicForm.MatchString(c.topic) {
		return fmt.Errorf("attribute \"topic\": %q is no topic's name: want up to 249 letters, digits, dots, _ and -", c.topic)
	}
	if c.uri, err = attribute(n, "source"); err != nil {
		return err
	}
	if c.key, err = c.fieldOf(n, "key", "string", "uuid.UUID"); err != nil {
		return err
	}
	if n.get("sequence") != nil {
		seq, err := c.fieldOf(n, "sequence", "int64", "int32")
		if err != nil {
			return err
		}
		c.sequence = &seq
	}
	return c.freeMethods()
}

// attribute is a string that must be there.
func attribute(n *node, name string) (string, error) {
	v := n.get(name)
	if v == nil {
		return "", fmt.Errorf("attribute %q is missing", name)
	}
	s, ok := v.text()
	if !ok || s == "" {
		return "", fmt.Errorf("attribute %q: want a string, got %s", name, v.compact())
	}
	return s, nil
}

// avroNames says in a schema's words which types an attribute's field may have.
var avroNames = map[string]string{"key": "a string or uuid", "sequence": "a long or int"}

func (c *contract) fieldOf(n *node, attr string, goTypes ...string) (field, error) {
	name, err := attribute(n, attr)
	if err != nil {
		return field{}, err
	}
	i := slices.IndexFunc(c.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, fmt.Errorf("attribute %q: %s has no field %q", attr, c.full, name)
	}
	if f := c.fields[i]; slices.Contains(goTypes, f.goType) {
		return f, nil
	}
	return field{}, fmt.Errorf("attribute %q: field %q must be %s", attr, name, avroNames[attr])
}

// freeMethods keeps a field from hiding a method of event.Data.
func (c *contract) freeMethods() error {
	for _, f := range c.fields {
		switch f.goName {
		case "EventContract", "EventKey", "EventSequence":
			return fmt.Errorf("%s.%s: the Go name %s is taken by a method", c.full, f.name, f.goName)
		}
	}
	return nil
}
