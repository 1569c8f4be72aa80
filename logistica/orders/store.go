// Package orders keeps the orders of every merchant and publishes what happens
// to them.
//
// Promise: an order and the event that tells of it commit together; an order
// moves only along the state machine and only by who may ([Steps]), each event carries its own
// version, and versions have no gaps. No tenant sees another's order, not even
// that it exists: every statement names the tenant, and row-level security
// forced on the tables refuses what a statement forgot.
//
// It takes part in the search for a courier by events alone: see [Store.Subscribe].
//
// Limits: events carry a district and a position to about a hundred metres,
// never a name, a phone number, an address or a delivery
// code. An idempotency key is remembered
// for at least [KeepKeys].
package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
)

// Outbox puts events into the batch that writes the facts they tell.
type Outbox interface {
	Queue(ctx context.Context, b *pgx.Batch, events ...event.Data) error
}

// Config is what may be set; its zero value works.
type Config struct {
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Attempts is how many couriers are asked, one after the other, before an
	// order is UNASSIGNABLE; 3 if zero.
	Attempts int
	// Offer is how long a courier who was given an order may take to set out,
	// before it is another's; 5 minutes if zero, for ever if below 0. After a
	// start nobody's time is over for as long again: they could not say so while
	// nobody listened.
	Offer time.Duration
	// Sweep is how often [Store.Run] forgets expired idempotency keys, every
	// ten minutes if zero.
	Sweep time.Duration
}

// Store keeps orders. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	outbox   Outbox
	now      func() time.Time
	attempts int
	sweep    time.Duration
	offer    time.Duration
}

// New makes a store on a migrated database.
func New(pool *pgxpool.Pool, outbox Outbox, cfg Config) *Store {
	s := &Store{pool: pool, outbox: outbox, now: cfg.Now, attempts: cfg.Attempts, sweep: cfg.Sweep, offer: cfg.Offer}
	if s.now == nil {
		s.now = time.Now
	}
	if s.attempts == 0 {
		s.attempts = 3
	}
	if s.offer == 0 {
		s.offer = 5 * time.Minute
	}
	if s.sweep == 0 {
		s.sweep = 10 * time.Minute
	}
	return s
}

// Errors of a store; compare with errors.Is.
var (
	ErrNotFound  = errors.New("no such order")
	ErrKeyReused = errors.New("idempotency key was used before with another request")
)

// VersionConflict refuses a transition that expected another version.
type VersionConflict struct {
	Expected, Current int64
	State             State
	Allowed           []State // from State, for who asked
}

func (e *VersionConflict) Error() string {
	return fmt.Sprintf("order is %s at version %d, not at version %d", e.State, e.Current, e.Expected)
}

// clock is now as Postgres keeps it, so that what is answered at once equals
// what is read later.
func (s *Store) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// withTenant is ctx acting for tenant, which the events of a change inherit.
func withTenant(ctx context.Context, tenant uuid.UUID) context.Context {
	if id := tenant.String(); event.Tenant(ctx) != id {
		return event.WithTenant(ctx, id)
	}
	return ctx
}
