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
// Other events may share tx: what a handler sets for the transaction (SET
// LOCAL), and the locks it takes, last beyond it, except for the setting
// waybill.tenant. A handler that must have one of its own is for a group with
// Config.MaxBatch 1.
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
	g.add(c, txForm, decodeOf[E](g, c), func(ctx context.Context, tx pgx.Tx, ms []*message) error {
		return h(ctx, tx, ms[0].body.(event.Of[E])) //nolint:forcetypeassert // decodeOf made it
	})
}

// decodeOf makes events of type E.
func decodeOf[E event.Data](g *Group, c *event.Contract) func(context.Context, *message) (any, error) {
	return func(ctx context.Context, m *message) (any, error) {
		e := event.Of[E]{Envelope: m.env, Position: m.pos}
		if err := g.deps.Decoder.Decode(ctx, m.rec.Value, &e.Data, c.Schema); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		return e, nil
	}
}

// PanicError is a handler's panic, as the error of its event.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

var errGone = errors.New("handler ended its goroutine")

// safely runs f and turns its panic into an error. It runs in a goroutine of
// its own, for what ends one, as FailNow of a test does, must not end a worker.
func safely(f func() error) error {
	end := make(chan error, 1)
	go func() {
		err := errGone
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{v, debug.Stack()}
			}
			end <- err
		}()
		err = f()
	}()
	return <-end
}
