package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// OnAnyBatchRead is [OnAnyBatch] with what read makes of each record, before there
// is a transaction: reading may ask the registry, which no transaction and no
// connection to the database shall wait for.
//
// read is called for a record that turns out to have been handled too. Its errors
// count as those of h do, of its record alone.
func OnAnyBatchRead[T any](g *Group, topic string, f Filter, read func(ctx context.Context, r Raw) (T, error), h func(ctx context.Context, tx pgx.Tx, all []T) error) {
	r := g.addAny(topic, f, setForm, func(ctx context.Context, tx pgx.Tx, ms []*message) error {
		all := make([]T, len(ms))
		for i, m := range ms {
			all[i] = m.body.(made[T]).t //nolint:forcetypeassert // made below
		}
		return h(ctx, tx, all)
	})
	raw := r.decode
	r.decode = func(ctx context.Context, m *message) (any, error) {
		in, err := raw(ctx, m)
		if err != nil {
			return nil, err
		}
		t, err := read(ctx, in.(Raw)) //nolint:forcetypeassert // addAny made it
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		return made[T]{t}, nil
	}
}

// made is what was read, never nil as T may be: that would be read again.
type made[T any] struct{ t T }
