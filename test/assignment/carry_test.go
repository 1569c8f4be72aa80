package assignment

import (
	"slices"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
)

// onward is where an order may be carried next, and nowhere while nobody has it.
func (g *game) onward(order uuid.UUID) []orders.State {
	o, err := g.orders.Get(g.ctx, g.tenant, order)
	if g.then("read", err); err != nil || o.Courier == uuid.Nil {
		return nil
	}
	return slices.DeleteFunc(orders.Allowed(o.State, orders.Merchant), func(s orders.State) bool { return s == orders.Cancelled })
}

// walk has the merchant move an order, as a phone call from the courier does.
func (g *game) walk(order uuid.UUID, to ...orders.State) {
	ctx := event.WithTenant(g.ctx, g.tenant.String())
	for _, s := range to {
		_, err := g.orders.Transition(ctx, g.tenant, order, orders.Move{To: s, Actor: orders.Merchant})
		g.then(string(s), err)
	}
}

// carry takes each order that somebody has a step further: to the customer, or
// back. It is false when there is none left.
func (g *game) carry(rt *rapid.T) (moved bool) {
	for _, o := range g.placed {
		if g.err != nil {
			return false
		}
		if to := g.onward(o); len(to) > 0 {
			g.walk(o, rapid.SampledFrom(to).Draw(rt, "carried to"))
			moved = true
		}
	}
	return moved
}

// rest handles all there is and then looks at all books.
func (g *game) rest(rt *rapid.T) {
	g.end(rt)
	if g.err != nil {
		rt.Fatal(g.err)
	}
	for _, o := range g.placed {
		b, err := g.book(g.ctx, g.tenant, o)
		if err == nil {
			err = b.balanced()
		}
		if err != nil {
			rt.Fatalf("order %s: %v\n%s", o, err, g.story())
		}
	}
	if err := g.idle(g.ctx, g.tenant, g.riders); err != nil {
		rt.Fatalf("%v\n%s", err, g.story())
	}
}
