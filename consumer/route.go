package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// form is what a handler gets.
type form int

const (
	txForm  form = iota // an event and a transaction
	setForm             // events and a transaction
)

type routeKey struct{ topic, typ string }

// route is what a group does with one type on one topic.
type route struct {
	typ  string
	form form
	pace pace
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
