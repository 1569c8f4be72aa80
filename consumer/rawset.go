package consumer

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// OnAnyBatch is [OnAny] in sets, as [OnBatch] has them: h gets the records of
// topic that f admits and no other handler is for, of whatever types together,
// so that a key's events of several types are not several sets. What is said of
// OnBatch about order, failures and ctx holds here too.
func OnAnyBatch(g *Group, topic string, f Filter, h func(ctx context.Context, tx pgx.Tx, rs []Raw) error) {
	g.addAny(topic, f, setForm, func(ctx context.Context, tx pgx.Tx, ms []*message) error {
		rs := make([]Raw, len(ms))
		for i, m := range ms {
			rs[i] = m.body.(Raw) //nolint:forcetypeassert // addAny made it
		}
		return h(ctx, tx, rs)
	})
}
