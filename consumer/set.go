package consumer

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// OnBatch has h handle the events of type E in sets, for SQL that does much at
// once: COPY, or INSERT … SELECT FROM unnest(…). A set has at most
// Config.MaxBatch events, 1000 unless that is set, and what is there: nothing
// is waited for. The events of a key are in their order, and no other event of
// the key was due between them.
//
// One transaction holds the set. If it fails it is done again in halves, until
// the event that fails stands alone. ctx acts for no tenant and names no cause,
// since the events may differ in both: what tells of one of them is added under
// event.WithCause(ctx, &e.Envelope).
func OnBatch[E event.Data](g *Group, h func(ctx context.Context, tx pgx.Tx, es []event.Of[E]) error) {
	var zero E
	onBatch(g, zero.EventContract(), h)
}

func onBatch[E event.Data](g *Group, c *event.Contract, h func(context.Context, pgx.Tx, []event.Of[E]) error) {
	g.add(c, setForm, decodeOf[E](g, c), func(ctx context.Context, tx pgx.Tx, ms []*message) error {
		es := make([]event.Of[E], len(ms))
		for i, m := range ms {
			es[i] = m.body.(event.Of[E]) //nolint:forcetypeassert // decodeOf made it
		}
		return h(ctx, tx, es)
	})
}
