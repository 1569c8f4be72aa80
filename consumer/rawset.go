package consumer

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// OnAnyBatch is [OnAny] for SQL that does much at once: h gets records in sets,
// as the handlers of [OnBatch] do.
func OnAnyBatch(g *Group, topic string, f Filter, h func(ctx context.Context, tx pgx.Tx, rs []Raw) error) {
	g.addAny(topic, f, setForm, func(ctx context.Context, tx pgx.Tx, ms []*message) error {
		rs := make([]Raw, len(ms))
		for i, m := range ms {
			rs[i] = m.body.(Raw) //nolint:forcetypeassert // addAny made it
		}
		return h(ctx, tx, rs)
	})
}
