// Package couriers knows who rides, for whom and whether they are free, and
// holds a courier for each order that wants one.
//
// Promise: a courier holds one order at a time and an order one courier: unique
// indexes on what is held refuse anything else. Every order whose search began
// hears one end of it for each attempt: CourierReserved, or
// CourierReservationFailed that is final; and a courier who was reserved is let
// go once, by CourierReleased, or at the end of the delivery, by which the
// courier is free. What is said of an order counts from 1 without gaps, and so
// does what is said of a courier's duty. The handlers may be given events in any
// order and more than once: they end the same.
//
// Limits: the nearest courier is the nearest by the straight line from the last
// position heard of. A courier who was reserved is let go only when orders has
// gone on without them, or the fee failed: who declines, who reassigns and a
// deadline that is past ask for it by CourierReleaseAsked, and while orders is
// away they wait.
package couriers

import (
	"context"
	"errors"
	"log/slog"
	"time"

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
	// Hold is how long a courier is held for an order that is not assigned, 2
	// minutes if zero. After a start nothing expires for as long again: what was
	// said while nobody listened is heard first.
	Hold time.Duration
	// Patience is how long an order waits for a courier, 10 minutes if zero.
	Patience time.Duration
	// Sweep is how often [Module.Run] looks for what expired and for orders that
	// wait though somebody is free, every 2 s if zero.
	Sweep time.Duration
	// Now is the clock, time.Now if nil.
	Now    func() time.Time
	Logger *slog.Logger // slog.Default() if nil
}

// Module is the couriers and what they are held for. It is safe for concurrent
// use.
type Module struct {
	pool   *pgxpool.Pool
	outbox Outbox
	cfg    Config
}

// New makes the module on a migrated database.
func New(pool *pgxpool.Pool, outbox Outbox, cfg Config) *Module {
	if cfg.Hold == 0 {
		cfg.Hold = 2 * time.Minute
	}
	if cfg.Patience == 0 {
		cfg.Patience = 10 * time.Minute
	}
	if cfg.Sweep == 0 {
		cfg.Sweep = 2 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Module{pool: pool, outbox: outbox, cfg: cfg}
}

// Errors of the module; compare with errors.Is.
var (
	ErrNotFound = errors.New("no such courier")
	ErrNoJob    = errors.New("no courier is held for this order")
	ErrCarried  = errors.New("the courier has the goods: the order can only be delivered, or fail and be brought back")
)

// clock is now as Postgres keeps it.
func (m *Module) clock() time.Time { return m.cfg.Now().UTC().Truncate(time.Microsecond) }
