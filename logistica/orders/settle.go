package orders

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/contracts"
)

// facts is what decides where an order stands in its present attempt.
type facts struct {
	reserved, notified, voided, released, failed bool
	reason                                       string // of the release or the failure
}

func (a *Assignment) facts() facts {
	if a == nil {
		return facts{}
	}
	f := facts{
		reserved: a.ReservedAt != nil, notified: a.NotifiedAt != nil, voided: a.VoidedAt != nil,
		released: a.ReleasedAt != nil, failed: a.FailedAt != nil,
	}
	switch {
	case f.released && a.ReleaseReason != nil:
		f.reason = *a.ReleaseReason
	case f.failed && a.Failure != nil:
		f.reason = *a.Failure
	}
	return f
}

// settle is where an order must go from a state, given all that is known of its
// attempt; last is true where no other attempt may follow. It knows no order of
// arrival: whatever of the facts came first, an order that has learned all of
// them ends in the same state.
//
// A release outweighs what led up to it. One that is heard of before its
// reservation takes the order the same way, so that its history reads the same.
// From PICKED_UP on nothing here moves an order: somebody holds the goods.
func settle(at State, f facts, last bool) []Move {
	by := func(reason string, to ...State) (moves []Move) {
		for _, t := range to {
			moves = append(moves, Move{To: t, Actor: System})
		}
		moves[len(moves)-1].Reason = reason
		return moves
	}
	again := Created
	if last {
		again = Unassignable
	}
	switch at { //nolint:exhaustive // the others are not for the saga to move
	case Created:
		switch {
		case f.released:
			return by(f.reason, Assigning, again)
		case f.reserved && f.notified && !f.voided:
			return by("", Assigning, Assigned)
		case f.reserved:
			return by("", Assigning)
		case f.failed:
			return by(f.reason, Unassignable)
		}
	case Assigning:
		switch {
		case f.released:
			return by(f.reason, again)
		case f.reserved && f.notified && !f.voided:
			return by("", Assigned)
		}
	case Assigned, PickupOngoing, ArrivedAtMerchant:
		if f.released {
			return by(f.reason, again)
		}
	}
	return nil
}

// letGo is where an order goes whose courier should be let go: the same way as if
// they had been, but that a deadline is met by an order that is assigned.
func letGo(at State, why contracts.ReleaseAsk, last bool) []Move {
	if why == contracts.ReleaseAskExpired && at != Created && at != Assigning {
		return nil
	}
	return settle(at, facts{released: true, reason: string(why)}, last)
}

// settle moves a locked order to where what is known of it says it belongs.
func (s *Store) settle(ctx context.Context, tx pgx.Tx, o *Order) error {
	return s.follow(ctx, tx, o, settle(o.State, o.Assignment.facts(), o.tries() >= s.attempts))
}

// follow makes moves, and those that follow from what is known of the attempt
// they lead to.
func (s *Store) follow(ctx context.Context, tx pgx.Tx, o *Order, moves []Move) error {
	for ; ; moves = settle(o.State, o.Assignment.facts(), o.tries() >= s.attempts) {
		attempt := o.Attempt
		for _, m := range moves {
			if err := guard(o.State, m); err != nil {
				return err
			}
			if err := s.move(ctx, tx, o, m); err != nil {
				return fmt.Errorf("settle order %s as %s: %w", o.ID, m.To, err)
			}
		}
		if o.Attempt == attempt {
			return nil
		}
		if err := readAssignment(ctx, tx, o.Tenant, o.ID, o); err != nil {
			return err
		}
	}
}

func readAssignment(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, o *Order) error {
	var b pgx.Batch
	queueAssignment(&b, tenant, id, o)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("read assignment of order %s: %w", id, err)
	}
	return nil
}
