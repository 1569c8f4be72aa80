package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
)

// referenceDepth bounds chains of references, which a registry of strangers
// could make circular.
const referenceDepth = 32

// written is a schema that values were written with.
type written struct {
	Info
	schema *avro.Schema
}

// Info names the schema a value was written with.
type Info struct {
	ID   int    `json:"id"`
	Name string `json:"name"` // full name of the record; the type's name if it is none
}

func newWritten(id int, s *avro.Schema) *written {
	root := s.Root()
	name := root.Name
	if name == "" {
		name = root.Type
	} else if root.Namespace != "" {
		name = root.Namespace + "." + name
	}
	return &written{Info{id, name}, s}
}

// byID finds the schema with an id. Many who miss the same one ask once.
func (c *Client) byID(ctx context.Context, id int) (*written, error) {
	for {
		if w, ok := c.schemas.Load(id); ok {
			return w.(*written), nil
		}
		mine := false
		_, err, _ := c.asking.Do(fmt.Sprint(id), func() (any, error) {
			mine = true
			if _, ok := c.schemas.Load(id); ok { // since we looked, somebody else's asking has ended
				return nil, nil
			}
			return nil, c.ask(ctx, id)
		})
		// Whoever asked for all of us may have been cancelled while we were not.
		if err != nil && (mine || ctx.Err() != nil || !cancelled(err)) {
			return nil, err
		}
	}
}

func cancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (c *Client) ask(ctx context.Context, id int) error {
	doing := fmt.Sprintf("fetch schema %d", id)
	text, err := c.sr.SchemaByID(ctx, id)
	if err != nil {
		answer := verdict(err)
		if answer != nil && answer.ErrorCode == codeSchemaNotFound {
			return fmt.Errorf("%w %d", ErrUnknownSchema, id)
		}
		return unavailable(doing, err)
	}
	schema, err := c.parse(ctx, text)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	c.schemas.Store(id, newWritten(id, schema))
	return nil
}

// parse compiles a schema after all it refers to.
func (c *Client) parse(ctx context.Context, s sr.Schema) (*avro.Schema, error) {
	return c.parseWith(ctx, &known{done: map[sr.SchemaReference]bool{}}, s, 0)
}

// known is what was read for one schema. What several references lead to is
// read once: where each of a row of schemas refers to the one before it twice,
// the ways to the first double with every schema.
type known struct {
	avro.SchemaCache
	done map[sr.SchemaReference]bool // by subject and version
}

func (c *Client) parseWith(ctx context.Context, known *known, s sr.Schema, depth int) (*avro.Schema, error) {
	if s.Type != sr.TypeAvro {
		return nil, fmt.Errorf("%w: it is %s, only Avro is understood", ErrInvalidSchema, s.Type)
	}
	if depth > referenceDepth {
		return nil, fmt.Errorf("%w: references go deeper than %d", ErrInvalidSchema, referenceDepth)
	}
	for _, ref := range s.References {
		place := sr.SchemaReference{Subject: ref.Subject, Version: ref.Version}
		if known.done[place] {
			continue
		}
		known.done[place] = true
		target, err := c.sr.SchemaByVersion(sr.WithParams(ctx, sr.ShowDeleted), ref.Subject, ref.Version)
		if err != nil {
			return nil, unavailable(fmt.Sprintf("fetch reference %s to %q version %d", ref.Name, ref.Subject, ref.Version), err)
		}
		if _, err := c.parseWith(ctx, known, target.Schema, depth+1); err != nil {
			return nil, fmt.Errorf("reference %s: %w", ref.Name, err)
		}
	}
	schema, err := known.Parse(s.Schema)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidSchema, err)
	}
	return schema, nil
}

// Subjects lists the subjects that begin with prefix, in order.
func (c *Client) Subjects(ctx context.Context, prefix string) ([]string, error) {
	all, err := c.sr.Subjects(ctx)
	if err != nil {
		return nil, unavailable("list subjects", err)
	}
	all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, prefix) })
	slices.Sort(all)
	return all, nil
}
