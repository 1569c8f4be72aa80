package saga

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// Events are types of events that mean the same to a saga.
type Events []listened

// EveryRound is what a function given to [On] returns for an event that
// concerns every round of its key, such as the cancellation of the whole: those
// there are, and those that begin after it. If there is none it is round 1's.
const EveryRound = -1

// NoRound is what a function given to [On] returns for an event that is none of
// the saga's: its type says too little.
const NoRound = 0

// On is the events of type E. round tells which round one belongs to, from 1,
// or [EveryRound] or [NoRound]; without it all belong to round 1.
//
// It must be a function of the event alone: an event is not looked at twice.
func On[E event.Data](round ...func(e event.Of[E]) int) Events {
	var zero E
	l := listened{contract: zero.EventContract(), round: func(any) int { return 1 }}
	if len(round) > 0 {
		l.round = func(e any) int { return round[0](e.(event.Of[E])) } //nolint:forcetypeassert // listen made it
	}
	l.listen = func(g *consumer.Group, h handler) {
		consumer.On(g, func(ctx context.Context, tx pgx.Tx, e event.Of[E]) error { return h(ctx, tx, &e.Envelope, e) })
	}
	return Events{l}
}

// Either is any of several types of events.
func Either(all ...Events) Events {
	var out Events
	for _, e := range all {
		out = append(out, e...)
	}
	return out
}

// handler records an event; e is an event.Of its type.
type handler func(ctx context.Context, tx pgx.Tx, env *event.Envelope, e any) error

// listened is a type of event, with the type itself behind functions.
type listened struct {
	contract *event.Contract
	round    func(e any) int
	listen   func(*consumer.Group, handler)
}
