package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// OnPrepared has h handle the events of type E with what prepare has found out
// before: a call elsewhere, say, that no transaction and no connection to the
// database shall wait for. Each event has its own transaction.
//
// prepare is called for each attempt, and for an event that turns out to have
// been handled. It sees all effects of the events of its key before it. Its
// errors count as those of h do.
func OnPrepared[E event.Data, P any](g *Group, prepare func(ctx context.Context, e event.Of[E]) (P, error), h func(ctx context.Context, tx pgx.Tx, e event.Of[E], prepared P) error) {
	var zero E
	onPrepared(g, zero.EventContract(), prepare, h)
}

// prepared is an event with what is known of it.
type prepared[E event.Data, P any] struct {
	e event.Of[E]
	p P
}

func onPrepared[E event.Data, P any](g *Group, c *event.Contract, prepare func(context.Context, event.Of[E]) (P, error), h func(context.Context, pgx.Tx, event.Of[E], P) error) {
	decode := decodeOf[E](g, c)
	g.add(c, preparedForm, func(ctx context.Context, m *message) (any, error) {
		e, err := decode(ctx, m)
		if err != nil {
			return nil, err
		}
		out := prepared[E, P]{e: e.(event.Of[E])} //nolint:forcetypeassert // decodeOf made it
		if out.p, err = prepare(ctx, out.e); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
		return out, nil
	}, func(ctx context.Context, tx pgx.Tx, ms []*message) error {
		in := ms[0].body.(prepared[E, P]) //nolint:forcetypeassert // made above
		return h(ctx, tx, in.e, in.p)
	})
}
