package queue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Of is a delivery with its body decoded.
type Of[T any] struct {
	Delivery
	Data T
}

// NewJSON makes a message of v.
func NewJSON(v any) (Message, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return Message{}, fmt.Errorf("%w body: %w", ErrInvalid, err)
	}
	return Message{Body: body, ContentType: ContentTypeJSON}, nil
}

// JSON makes a handler of bodies that are JSON of a T. One that is not fails,
// and is dead in the end.
func JSON[T any](handle func(ctx context.Context, tx pgx.Tx, m Of[T]) error) Handler {
	return func(ctx context.Context, tx pgx.Tx, d Delivery) error {
		m := Of[T]{Delivery: d}
		if err := json.Unmarshal(d.Body, &m.Data); err != nil {
			return fmt.Errorf("body is no JSON of %T: %w", m.Data, err)
		}
		return handle(ctx, tx, m)
	}
}
