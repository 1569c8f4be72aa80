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
}

// Transition moves an order of tenant and publishes OrderStatusChanged, and
// OrderDelivered after it where the order is delivered.
//
// It refuses with *[ForbiddenTransition], *[VersionConflict], *[Invalid] or
// [ErrNotFound].
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
	if m.Expected != 0 && m.Expected != o.Version {
		return Order{}, &VersionConflict{Expected: m.Expected, Current: o.Version, State: o.State}
	}
	if err := guard(o.State, m.To); err != nil {
		return Order{}, err
	}
	if err := s.move(withTenant(ctx, tenant), tx, &o, m); err != nil {
		return Order{}, fmt.Errorf("move order %s to %s: %w", id, m.To, err)
	}
	return o, nil
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
	changed := o.Version
	events := []event.Data{changedEvent(*o, from, m)}
	if m.To == Delivered {
		o.Version++
		events = append(events, deliveredEvent(*o))
	}
	var b pgx.Batch
	b.Queue(`UPDATE orders.orders SET state = $3, version = $4, updated_at = $5 WHERE tenant = $1 AND id = $2`,
		o.Tenant, o.ID, string(o.State), o.Version, now)
	b.Queue(`INSERT INTO orders.transitions (tenant, order_id, version, from_state, to_state, reason, actor, at)
		VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8)`,
		o.Tenant, o.ID, changed, string(from), string(m.To), m.Reason, string(m.Actor), now)
	if err := s.outbox.Queue(ctx, &b, events...); err != nil {
		return err
	}
	return tx.SendBatch(ctx, &b).Close()
}

// duration is from creation to the order's last change.
func (o Order) duration() time.Duration { return max(0, o.UpdatedAt.Sub(o.CreatedAt)) }
