package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// OnAnyBatch is [OnAny] in sets, as [OnBatch] has them: h gets the records of
// topic that f admits and no other handler is for, of whatever types together,
// so that a key's events of several types are not several sets. What is said of
// OnBatch about order, failures and ctx holds here too.
func OnAnyBatch(g *Group, topic string, f Filter, h func(ctx context.Context, tx pgx.Tx, rs []Raw) error) {
	if err := f.check(); err != nil {
		g.faults = append(g.faults, err)
	}
	if topic == "" {
		g.faults = append(g.faults, fmt.Errorf("a handler of any type has no topic: name the one it reads"))
	}
	r := &route{typ: anyType, form: setForm}
	r.decode = func(_ context.Context, m *message) (any, error) {
		return Raw{m.env, m.pos, m.rec.Key, m.rec.Value, m.rec.Headers}, nil
	}
	r.handle = func(ctx context.Context, tx pgx.Tx, ms []*message) error {
		rs := make([]Raw, len(ms))
		for i, m := range ms {
			rs[i] = m.body.(Raw) //nolint:forcetypeassert // made above
		}
		return h(ctx, tx, rs)
	}
	g.anys[topic] = append(g.anys[topic], anyRoute{f, r})
}
