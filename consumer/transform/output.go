package transform

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// Why an event that a handler made is refused; compare with errors.Is.
var (
	ErrUnknownType   = errors.New("its contract was not given to transform.New; add it to Config.Outputs")
	ErrMissingTenant = errors.New("the event it was made of has no tenant, so nobody would own it; filter such records out, or make records of them with OnAny")
	ErrMissingKey    = errors.New("no key; fill the field its contract names as key")
	ErrInvalid       = errors.New("value does not fit its schema")
)

// register asks for the schemas of what handlers make, so that an incompatible
// one is refused at the start and the registry is on no record's path.
func (g *Group) register(ctx context.Context) error {
	for _, c := range g.cfg.Outputs {
		if _, ok := g.outputs[c]; ok {
			continue
		}
		id, err := g.deps.Schemas.RegisterText(ctx, c.Subject(), c.Text)
		if err != nil {
			return fmt.Errorf("schema of %s: %w", c.Type, err)
		}
		g.outputs[c] = id
	}
	return nil
}

// encode makes records of what a handler made of an event. What is refused would
// be so at the next try too.
func (g *Group) encode(ctx context.Context, from *event.Envelope, made []event.Data) ([]*kgo.Record, error) {
	out := make([]*kgo.Record, len(made))
	for n, d := range made {
		rec, err := g.encodeOne(ctx, from, n, d)
		if err != nil {
			return nil, consumer.Permanent(err)
		}
		out[n] = rec
	}
	return out, nil
}

func (g *Group) encodeOne(ctx context.Context, from *event.Envelope, n int, d event.Data) (*kgo.Record, error) {
	c := d.EventContract()
	refuse := func(why error) error { return fmt.Errorf("event %d that was made, %s: %w", n+1, c.Type, why) }
	schema, ok := g.outputs[c]
	switch {
	case !ok:
		return nil, refuse(ErrUnknownType)
	case from.Tenant == "":
		return nil, refuse(ErrMissingTenant)
	case d.EventKey() == "":
		return nil, refuse(ErrMissingKey)
	}
	value, err := c.Schema.AppendEncode(registry.AppendHeader(nil, schema), d)
	if err != nil {
		return nil, refuse(fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	env := c.Derived(ctx, from, g.cfg.Group, n, d)
	rec := &kgo.Record{Topic: c.Topic, Key: []byte(env.Subject), Value: value, Headers: make([]kgo.RecordHeader, 0, 12)}
	env.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec, nil
}
