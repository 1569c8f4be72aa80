package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// Delivery is how often an event is handled, whatever dies in between.
type Delivery int

const (
	// Once is for handlers whose effects are in their transaction.
	Once Delivery = iota
	// AtLeastOnce is for effects elsewhere, by handlers of OnEvent. An event
	// that fails is tried again and parked as with Once. A member that is taken
	// over without being told may still handle an event beside the next owner.
	AtLeastOnce
	// AtMostOnce is for what is worthless when it comes late or twice: the
	// position advances before the event is handled, each partition in its
	// order. What fails, or is under way when its member dies, is lost and told.
	AtMostOnce
)

func (d Delivery) String() string {
	return [...]string{"Once", "AtLeastOnce", "AtMostOnce"}[d]
}

// OnEvent has h handle the events of type E without a transaction. It goes with
// the deliveries AtLeastOnce and AtMostOnce only.
func OnEvent[E event.Data](g *Group, h func(ctx context.Context, e event.Of[E]) error) {
	var zero E
	onEvent(g, zero.EventContract(), h)
}

func onEvent[E event.Data](g *Group, c *event.Contract, h func(context.Context, event.Of[E]) error) {
	g.add(c, directForm, decodeOf[E](g, c), func(ctx context.Context, _ pgx.Tx, ms []*message) error {
		return h(ctx, ms[0].body.(event.Of[E])) //nolint:forcetypeassert // decodeOf made it
	})
}

// fitting tells what form of handler does not go with the delivery.
func (g *Group) fitting() error {
	if g.cfg.Delivery < Once || g.cfg.Delivery > AtMostOnce || g.cfg.Ordering < ByKey || g.cfg.Ordering > Unordered {
		return fmt.Errorf("delivery %d or ordering %d is none: use the constants of package consumer", g.cfg.Delivery, g.cfg.Ordering)
	}
	var errs []error
	for _, r := range g.allRoutes() {
		switch direct := r.form == directForm; {
		case direct && g.cfg.Delivery == Once:
			errs = append(errs, fmt.Errorf("the handler of %s has no transaction, so its effects cannot be made once: register it with On, or set Delivery to AtLeastOnce or AtMostOnce", r.typ))
		case !direct && g.cfg.Delivery != Once:
			errs = append(errs, fmt.Errorf("the handler of %s wants a transaction, and delivery %s has none: register it with OnEvent, or set Delivery to Once", r.typ, g.cfg.Delivery))
		}
	}
	return errors.Join(errs...)
}

// direct has a handler run without a transaction. after is done in one of its
// own when it has succeeded.
func (s *session) direct(p *partition, m *message, after func(context.Context, pgx.Tx) error) error {
	defer s.meter.took(m.route.typ, time.Now())
	ctx, cancel := context.WithTimeout(p.ctx, s.cfg.Timeout)
	defer cancel()
	err := safely(func() error { return m.route.handle(event.WithCause(ctx, &m.env), nil, []*message{m}) })
	if err != nil || after == nil {
		return err
	}
	return s.behindFence(ctx, p, func(tx pgx.Tx) error { return after(ctx, tx) })
}
