package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// Handler makes one event's effects in tx. What it adds to an outbox under ctx
// is caused by the event and belongs to its tenant.
//
// It must not end tx. An error or a panic undoes everything and is counted
// against the event, unless it comes from infrastructure.
type Handler[E event.Data] func(ctx context.Context, tx pgx.Tx, e event.Of[E]) error

// On has h handle the events of type E, read from the topic of E's contract.
// Call it before [Group.Run]. A second handler of a type makes Run fail.
func On[E event.Data](g *Group, h func(ctx context.Context, tx pgx.Tx, e event.Of[E]) error) {
	var zero E
	on(g, zero.EventContract(), h)
}

func on[E event.Data](g *Group, c *event.Contract, h Handler[E]) {
	k := routeKey{c.Topic, c.Type}
	if g.routes[k] != nil {
		g.faults = append(g.faults, fmt.Errorf("two handlers for %s on %s", c.Type, c.Topic))
		return
	}
	g.routes[k] = &route{c.Type, func(ctx context.Context, m *message) (effect, error) {
		e := event.Of[E]{Envelope: m.env, Position: m.pos}
		if err := g.deps.Decoder.Decode(ctx, m.rec.Value, &e.Data, c.Schema); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		return func(ctx context.Context, tx pgx.Tx) error { return h(ctx, tx, e) }, nil
	}}
}

type routeKey struct{ topic, typ string }

// route is what a group does with one type on one topic.
type route struct {
	typ string
	// decode makes the handler's work of a message, outside of a transaction
	// since it may ask the registry.
	decode func(context.Context, *message) (effect, error)
}

type effect func(context.Context, pgx.Tx) error

// PanicError is a handler's panic, as the error of its event.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

var errGone = errors.New("handler ended its goroutine")

// safely runs f and turns its panic into an error. It runs in a goroutine of
// its own, for what ends one, as FailNow of a test does, must not end a worker.
func (f effect) safely(ctx context.Context, tx pgx.Tx) error {
	end := make(chan error, 1)
	go func() {
		err := errGone
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{v, debug.Stack()}
			}
			end <- err
		}()
		err = f(ctx, tx)
	}()
	return <-end
}
