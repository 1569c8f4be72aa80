package consumer

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// form is what a handler gets.
type form int

const (
	txForm       form = iota // an event and a transaction
	setForm                  // events and a transaction
	preparedForm             // an event, what was prepared for it, and a transaction
	directForm               // an event
)

type routeKey struct{ topic, typ string }

// route is what a group does with one type on one topic.
type route struct {
	typ  string
	form form
	pace pace
	pass bool // nobody handles it: its number is counted, see gap_pass.go
	// decode makes what the handler gets, outside of a transaction since it may
	// ask the registry.
	decode func(context.Context, *message) (any, error)
	// handle gets decoded messages, one unless the form is a set.
	handle func(context.Context, pgx.Tx, []*message) error
}

func (g *Group) add(c *event.Contract, f form, decode func(context.Context, *message) (any, error), handle func(context.Context, pgx.Tx, []*message) error) {
	k := routeKey{c.Topic, c.Type}
	if g.routes[k] != nil {
		g.faults = append(g.faults, fmt.Errorf("two handlers for %s on %s", c.Type, c.Topic))
		return
	}
	g.routes[k] = &route{typ: c.Type, form: f, decode: decode, handle: handle}
}

// routeOf is what the group does with a record, nil for nothing.
func (g *Group) routeOf(rec *kgo.Record) *route {
	if !g.cfg.Filter.admits(rec) {
		return nil
	}
	if r := g.routes[routeKey{rec.Topic, recordType(rec)}]; r != nil {
		return r
	}
	for _, a := range g.anys[rec.Topic] {
		if a.admits(rec) {
			return a.route
		}
	}
	return nil
}

func (g *Group) allRoutes() []*route {
	all := slices.Collect(maps.Values(g.routes))
	for _, as := range g.anys {
		for _, a := range as {
			all = append(all, a.route)
		}
	}
	return all
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
