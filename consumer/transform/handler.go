package transform

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// On has h make events of the events of type E, read from the topic of E's
// contract. What it returns goes, in that order, to the topics of its contracts,
// which must be among Config.Outputs; nothing is fine. Its events are caused by
// e, at e's time and for e's tenant, under ids that are made of e's.
//
// Call it before [Group.Run]. A second handler of a type makes Run fail.
//
// It is called in the order of e's key, from several goroutines for different
// keys. An error or a panic is counted against the event, unless it comes from
// infrastructure. One that is still at work when Config.Timeout is over is taken
// to have failed, and left to itself.
func On[E event.Data](g *Group, h func(ctx context.Context, e event.Of[E]) ([]event.Data, error)) {
	var zero E
	on(g, zero.EventContract(), h)
}

func on[E event.Data](g *Group, c *event.Contract, h func(context.Context, event.Of[E]) ([]event.Data, error)) {
	k := routeKey{c.Topic, c.Type}
	if g.routes[k] != nil {
		g.faults = append(g.faults, fmt.Errorf("two handlers for %s on %s", c.Type, c.Topic))
		return
	}
	g.routes[k] = &route{typ: c.Type, handle: func(ctx context.Context, it *item) ([]*kgo.Record, error) {
		e := event.Of[E]{Envelope: it.env, Position: it.position()}
		if err := g.deps.Decoder.Decode(ctx, it.rec.Value, &e.Data, c.Schema); err != nil {
			return nil, fmt.Errorf("%w: %w", consumer.ErrUnreadable, err)
		}
		made, err := h(ctx, e)
		if err != nil {
			return nil, err
		}
		return g.encode(ctx, &it.env, made)
	}}
}

// OnAny has h make records of the records of topic that f admits and no other
// handler of the group is for, whatever their type. What it returns is written as
// it is; of its own a record has only what h gave it, ids and causes included.
func OnAny(g *Group, topic string, f consumer.Filter, h func(ctx context.Context, r consumer.Raw) ([]*kgo.Record, error)) {
	if err := f.Check(); err != nil {
		g.faults = append(g.faults, err)
	}
	if topic == "" {
		g.faults = append(g.faults, fmt.Errorf("a handler of any type has no topic: name the one it reads"))
	}
	r := &route{typ: anyType, handle: func(ctx context.Context, it *item) ([]*kgo.Record, error) {
		made, err := h(ctx, consumer.Raw{
			Envelope: it.env, Position: it.position(), Key: it.rec.Key, Value: it.rec.Value, Headers: it.rec.Headers,
		})
		return copies(made), err
	}}
	g.anys[topic] = append(g.anys[topic], anyRoute{f, r})
}

// copies are for the client to write in: a handler may give one record twice.
func copies(made []*kgo.Record) []*kgo.Record {
	out := make([]*kgo.Record, len(made))
	for i, r := range made {
		out[i] = &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
	}
	return out
}

// What types are called in metrics that are without end.
const (
	anyType   = "any"
	otherType = "other"
)

type routeKey struct{ topic, typ string }

// route is what a group does with one type on one topic.
type route struct {
	typ    string
	handle func(context.Context, *item) ([]*kgo.Record, error)
}

type anyRoute struct {
	consumer.Filter
	*route
}

// routeOf is what the group does with a record of a type, nil for nothing.
func (g *Group) routeOf(rec *kgo.Record, typ string) *route {
	if !g.cfg.Filter.Admits(rec) {
		return nil
	}
	if r := g.routes[routeKey{rec.Topic, typ}]; r != nil {
		return r
	}
	for _, a := range g.anys[rec.Topic] {
		if a.Admits(rec) {
			return a.route
		}
	}
	return nil
}

// topics are those the group reads.
func (g *Group) topics() []string {
	names := map[string]bool{}
	for k := range g.routes {
		names[k.topic] = true
	}
	for t := range g.anys {
		names[t] = true
	}
	return slices.Sorted(maps.Keys(names))
}
