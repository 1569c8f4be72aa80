package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// Move asks for a transition.
type Move struct {
	To     State
	Reason string // may be empty; it is published, so it must not name the customer
	Actor  Actor
	// Expected is the version the order must have, any if zero.
	Expected int64

	proof string // of a delivery by a courier, who has shown it
}

// Transition moves an order of tenant and publishes OrderStatusChanged, and
// OrderAssigned or OrderDelivered after it where the order gets its courier or
// to its customer. A merchant who delivers confirms it: no code is asked for. A
// courier delivers by [Store.MoveAsCourier].
//
// It refuses with *[ForbiddenTransition], *[VersionConflict], *[Invalid],
// *[CodeRefused] or [ErrNotFound].
func (s *Store) Transition(ctx context.Context, tenant, id uuid.UUID, m Move) (Order, error) {
	var o Order
	err := pg.InTenant(ctx, s.pool, tenant.String(), func(tx pgx.Tx) (err error) {
		o, err = s.TransitionTx(ctx, tx, tenant, id, m)
		return err
	})
	return o, err
}

// TransitionTx is [Store.Transition] in the caller's transaction, for a handler
// that moves an order in answer to an event.
func (s *Store) TransitionTx(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, m Move) (Order, error) {
	if err := m.validate(); err != nil {
		return Order{}, err
	}
	o, err := lock(ctx, tx, tenant, id)
	if err != nil {
		return Order{}, err
	}
	if err := check(o, m); err != nil {
		return Order{}, err
	}
	if err := s.apply(ctx, tx, &o, m); err != nil {
		return Order{}, err
	}
	return o, nil
}

// check lets a move of the order as it stands pass, or says why not.
func check(o Order, m Move) error {
	if m.Expected != 0 && m.Expected != o.Version {
		return &VersionConflict{Expected: m.Expected, Current: o.Version, State: o.State, Allowed: Allowed(o.State, m.Actor)}
	}
	return guard(o.State, m)
}

// apply makes a move that was checked.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, o *Order, m Move) error {
	switch {
	case m.To != Delivered || m.proof != "":
	case m.Actor == Merchant:
		m.proof = ProofMerchant
	default:
		return &CodeRefused{Missing: true, Left: MaxCodeTries - int(o.CodeTries)}
	}
	if err := s.move(withTenant(ctx, o.Tenant), tx, o, m); err != nil {
		return fmt.Errorf("move order %s to %s: %w", o.ID, m.To, err)
	}
	return nil
}

func (m *Move) validate() error {
	var bad Invalid
	if _, ok := ParseState(string(m.To)); !ok {
		bad.add("to", "must be a state of an order")
	}
	if m.Expected < 0 {
		bad.add("expected_version", "must be at least 1")
	}
	text(&bad, "reason", m.Reason, 0, MaxReason)
	return bad.err()
}

// lock reads an order so that nobody else moves it before this transaction ends.
func lock(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (o Order, err error) {
	var b pgx.Batch
	b.Queue(`SELECT set_config('waybill.tenant', $1, true)`, tenant.String()) // the transaction may be a stranger's
	b.Queue(selectOrder+`WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE`, tenant, id).
		QueryRow(func(row pgx.Row) error { return scanOrder(row, &o) })
	queueAssignment(&b, tenant, id, &o)
	err = tx.SendBatch(ctx, &b).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return Order{}, ErrNotFound
	}
	if err != nil {
		return Order{}, fmt.Errorf("lock order %s: %w", id, err)
	}
	return o, nil
}

func (s *Store) move(ctx context.Context, tx pgx.Tx, o *Order, m Move) error {
	from, now := o.State, s.clock()
	if now.Before(o.UpdatedAt) { // another machine's clock is ahead: time never runs back in a timeline
		now = o.UpdatedAt
	}
	o.State, o.Version, o.UpdatedAt = m.To, o.Version+1, now
	o.enter(from, m)
	changed := o.Version
	events := []event.Data{changedEvent(*o, from, m)}
	switch {
	case m.To == Delivered:
		o.Version++
		events = append(events, deliveredEvent(*o))
	case m.To == Assigned && o.Courier != uuid.Nil:
		o.Version++
		events = append(events, assignedEvent(*o))
	}
	var b pgx.Batch
	o.queueUpdate(&b)
	b.Queue(`INSERT INTO orders.transitions (tenant, order_id, version, from_state, to_state, reason, actor, at)
		VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8)`,
		o.Tenant, o.ID, changed, string(from), string(m.To), m.Reason, string(m.Actor), now)
	if err := s.outbox.Queue(ctx, &b, events...); err != nil {
		return err
	}
	return tx.SendBatch(ctx, &b).Close()
}

// enter changes what goes with a state.
func (o *Order) enter(from State, m Move) {
	switch m.To { //nolint:exhaustive // the others change nothing else
	case Created:
		o.Attempt, o.Courier, o.DistanceM, o.Assignment = o.Attempt+1, uuid.Nil, nil, nil
		if from == Unassignable {
			o.firstAttempt = o.Attempt
		}
	case Unassignable:
		o.Courier, o.DistanceM = uuid.Nil, nil
	case Assigned:
		// By the saga alone an order has a courier's name and their fee; one that
		// was moved by hand is assigned to nobody in particular.
		if a := o.Assignment; a != nil && a.ReservedAt != nil && a.NotifiedAt != nil {
			at := o.UpdatedAt
			o.Courier, o.DistanceM, a.AssignedAt = *a.Courier, a.DistanceM, &at
		}
	case Delivered:
		o.Proof = m.proof
	}
}

func (o *Order) queueUpdate(b *pgx.Batch) {
	b.Queue(`UPDATE orders.orders SET state = $3, version = $4, updated_at = $5, attempt = $6, first_attempt = $7,
		courier = $8, distance_m = $9, proof = nullif($10, '') WHERE tenant = $1 AND id = $2`,
		o.Tenant, o.ID, string(o.State), o.Version, o.UpdatedAt, o.Attempt, o.firstAttempt,
		uuid.NullUUID{UUID: o.Courier, Valid: o.Courier != uuid.Nil}, o.DistanceM, o.Proof)
	if o.State == Assigned && o.Courier != uuid.Nil {
		b.Queue(`UPDATE orders.assignments SET assigned_at = $4 WHERE tenant = $1 AND order_id = $2 AND attempt = $3`,
			o.Tenant, o.ID, o.Attempt, o.UpdatedAt)
	}
}

// duration is from creation to the order's last change.
func (o Order) duration() time.Duration { return max(0, o.UpdatedAt.Sub(o.CreatedAt)) }
