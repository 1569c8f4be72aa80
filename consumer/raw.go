package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// Raw is a record as it is: its value is not decoded. It must not be changed.
// A record without an envelope has an id made of its place in the log, and its
// timestamp for its time.
type Raw struct {
	event.Envelope
	event.Position
	Key     []byte
	Value   []byte // nil for a tombstone
	Headers []kgo.RecordHeader
}

// anyType is what handlers of any type are called in metrics: the types are
// without end.
const anyType = "any"

// OnAny has h handle the records of topic that f admits and no other handler
// of the group is for, whatever their type. Of several such handlers the first
// that was registered is used.
func OnAny(g *Group, topic string, f Filter, h func(ctx context.Context, tx pgx.Tx, r Raw) error) {
	g.addAny(topic, f, txForm, func(ctx context.Context, tx pgx.Tx, ms []*message) error {
		return h(ctx, tx, ms[0].body.(Raw)) //nolint:forcetypeassert // addAny made it
	})
}

func (g *Group) addAny(topic string, f Filter, form form, handle func(context.Context, pgx.Tx, []*message) error) *route {
	if err := f.check(); err != nil {
		g.faults = append(g.faults, err)
	}
	if topic == "" {
		g.faults = append(g.faults, fmt.Errorf("a handler of any type has no topic: name the one it reads"))
	}
	r := &route{typ: anyType, form: form, handle: handle}
	r.decode = func(_ context.Context, m *message) (any, error) {
		return Raw{m.env, m.pos, m.rec.Key, m.rec.Value, m.rec.Headers}, nil
	}
	g.anys[topic] = append(g.anys[topic], anyRoute{f, r})
	return r
}

type anyRoute struct {
	Filter
	*route
}
