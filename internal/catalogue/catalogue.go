// Package catalogue describes a system's events for people and for tools: an
// HTML page, and an AsyncAPI 3 document. It is made from a registry, or from a
// folder of contracts.
package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/twmb/avro"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/internal/schemas"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/compat"
)

// Catalogue is all events, by topic.
type Catalogue struct {
	Title  string
	Topics []Topic
}

// Topic is a channel and the events it carries.
type Topic struct {
	Name   string
	Events []Event
}

// Event is a type of event.
type Event struct {
	Subject  string
	Anchor   string // names it within the catalogue
	Type     string // full name of the record
	Name     string // its last part
	Doc      string
	Key      string // the field that is the record's key, if known
	Source   string // CloudEvents' source, if known
	Level    string // how it may change
	Fields   []compat.Field
	Versions []Version // oldest first; none of a folder's contract
	Schema   json.RawMessage
}

// Version is a registered state of an event.
type Version struct {
	Number, ID int
	Changes    []compat.Change // since the one before
}

// FromTree describes a folder's contracts.
func FromTree(title string, tree []schemas.Contract) *Catalogue {
	c := &Catalogue{Title: title}
	for _, s := range tree {
		e := describe(s.Subject, s.Type, s.Avro, s.Schema)
		e.Key, e.Source = s.Key, s.Source
		c.add(s.Topic, e)
	}
	return c.sorted()
}

// askAtOnce bounds how many subjects are asked about side by side.
const askAtOnce = 8

// FromRegistry describes the subjects of a registry that are named
// TOPIC-RECORD, which are those of events; known may tell more about some. A
// subject in another language than Avro, or with a version that cannot be read,
// is none of them.
func FromRegistry(ctx context.Context, title string, r *registry.Client, known []schemas.Contract) (*Catalogue, error) {
	subjects, err := r.Subjects(ctx, "")
	if err != nil {
		return nil, err
	}
	topics, events := make([]string, len(subjects)), make([]Event, len(subjects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(askAtOnce)
	for i, subject := range subjects {
		g.Go(func() (err error) {
			topics[i], events[i], err = registered(ctx, r, subject)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	c := &Catalogue{Title: title}
	for i, topic := range topics {
		if topic == "" {
			continue
		}
		e := events[i]
		if i := slices.IndexFunc(known, func(k schemas.Contract) bool { return k.Subject == e.Subject }); i >= 0 {
			e.Key, e.Source = known[i].Key, known[i].Source
		}
		c.add(topic, e)
	}
	return c.sorted(), nil
}

// registered is the event that a subject is, without a topic if it is none.
func registered(ctx context.Context, r *registry.Client, subject string) (topic string, e Event, err error) {
	versions, err := r.Versions(ctx, subject)
	switch {
	case errors.Is(err, registry.ErrInvalidSchema):
		return "", Event{}, nil
	case err != nil:
		return "", Event{}, err
	case len(versions) == 0:
		return "", Event{}, nil // removed since
	}
	latest := versions[len(versions)-1]
	typ := typeOf(latest.Schema)
	topic, ok := strings.CutSuffix(subject, "-"+typ)
	if !ok || topic == "" || typ == "" {
		return "", Event{}, nil
	}
	e = describe(subject, typ, latest.Schema, latest.Text)
	e.Versions = history(versions)
	e.Level, err = r.Level(ctx, subject)
	return topic, e, err
}

func history(versions []registry.Version) []Version {
	out := make([]Version, 0, len(versions))
	for i, v := range versions {
		var changes []compat.Change
		if i > 0 {
			changes = compat.Diff(versions[i-1].Schema, v.Schema)
		}
		out = append(out, Version{v.Number, v.ID, changes})
	}
	return out
}

func describe(subject, typ string, s *avro.Schema, text string) Event {
	return Event{
		Subject: subject, Type: typ, Name: typ[strings.LastIndexByte(typ, '.')+1:], Doc: s.Root().Doc,
		Fields: compat.Fields(s), Schema: json.RawMessage(text),
	}
}

func typeOf(s *avro.Schema) string {
	root := s.Root()
	if root.Namespace == "" {
		return root.Name
	}
	return root.Namespace + "." + root.Name
}

func (c *Catalogue) add(topic string, e Event) {
	i := slices.IndexFunc(c.Topics, func(t Topic) bool { return t.Name == topic })
	if i < 0 {
		i, c.Topics = len(c.Topics), append(c.Topics, Topic{Name: topic})
	}
	c.Topics[i].Events = append(c.Topics[i].Events, e)
}

// sorted also gives each event the name that links and references know it by:
// its type's, and that of its subject where several topics carry the type.
func (c *Catalogue) sorted() *Catalogue {
	slices.SortFunc(c.Topics, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range c.Topics {
		slices.SortFunc(t.Events, func(a, b Event) int { return cmp.Compare(a.Type, b.Type) })
	}
	seen := map[string]int{}
	for _, t := range c.Topics {
		for _, e := range t.Events {
			seen[e.Type]++
		}
	}
	for _, t := range c.Topics {
		for i := range t.Events {
			e := &t.Events[i]
			if e.Anchor = e.Type; seen[e.Type] > 1 {
				e.Anchor = e.Subject
			}
		}
	}
	return c
}
