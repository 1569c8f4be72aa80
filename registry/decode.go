package registry

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/avro"
)

// Decoder turns values of the wire back into what was said. It is safe for
// concurrent use; after the first value of a schema it asks nobody.
type Decoder struct {
	client   *Client
	resolved sync.Map // pair -> *avro.Schema
}

// pair is a writer and a reader. Readers are few and live as long as the
// program, so the pointer names them.
type pair struct {
	writer int
	reader *avro.Schema
}

// NewDecoder makes a decoder that asks c for schemas.
func NewDecoder(c *Client) *Decoder { return &Decoder{client: c} }

// Decode decodes value, in the wire format, into the Go value that into points
// to, as a reader of schema reader sees it; nil reads as the writer wrote.
//
// The error is [ErrUnavailable] when the registry could not be asked. Any
// other is the event's own fault: [ErrNotWireFormat], [ErrUnknownSchema],
// [ErrInvalidSchema], [ErrMalformed], or an [avro.CompatibilityError] when the
// reader cannot read what this writer wrote.
func (d *Decoder) Decode(ctx context.Context, value []byte, into any, reader *avro.Schema) error {
	id, body, err := SplitHeader(value)
	if err != nil {
		return err
	}
	schema, err := d.schema(ctx, id, reader)
	if err != nil {
		return err
	}
	return decode(id, schema, body, into)
}

// DecodeAny decodes value to JSON, as its writer wrote it, for a person to
// read. Times are numbers, unions are bare. Errors are as of Decode.
func (d *Decoder) DecodeAny(ctx context.Context, value []byte) (Info, []byte, error) {
	id, body, err := SplitHeader(value)
	if err != nil {
		return Info{}, nil, err
	}
	w, err := d.client.byID(ctx, id)
	if err != nil {
		return Info{ID: id}, nil, err
	}
	var v any
	if err := decode(id, w.schema, body, &v); err != nil {
		return w.Info, nil, err
	}
	text, err := w.schema.EncodeJSON(v)
	if err != nil {
		return w.Info, nil, fmt.Errorf("print value of schema %d: %w", id, err)
	}
	return w.Info, text, nil
}

func decode(id int, schema *avro.Schema, body []byte, into any) error {
	rest, err := schema.Decode(body, into)
	if err != nil {
		return fmt.Errorf("value of schema %d %w: %w", id, ErrMalformed, err)
	}
	if len(rest) > 0 {
		// A body that ends early was written with another schema: what was
		// read is not what was said.
		return fmt.Errorf("value of schema %d %w: %d bytes are left over", id, ErrMalformed, len(rest))
	}
	return nil
}

// schema decodes what the writer with an id wrote into the reader's shape.
func (d *Decoder) schema(ctx context.Context, id int, reader *avro.Schema) (*avro.Schema, error) {
	key := pair{id, reader}
	if s, ok := d.resolved.Load(key); ok {
		return s.(*avro.Schema), nil
	}
	w, err := d.client.byID(ctx, id)
	if err != nil {
		return nil, err
	}
	if reader == nil {
		return w.schema, nil
	}
	s, err := avro.Resolve(w.schema, reader)
	if err != nil {
		return nil, fmt.Errorf("read values of schema %d (%s): %w", id, w.Name, err)
	}
	d.resolved.Store(key, s)
	return s, nil
}
