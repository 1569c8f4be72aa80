// Package billing keeps the platform's fee of each order: billed when a courier
// is reserved, voided when that courier is let go.
//
// Promise: an order has at most one fee that stands, held by a constraint, and
// none once its courier was released. The facts it hears of come from several
// topics, so in any order and more than once; what stands in the end is the same
// for all of them. A release that comes before its reservation bars the fee, and
// so does a later attempt. What it says of an order is numbered 1, 2, 3, …
// without gaps, and commits with what it says.
//
// The fee is [Config.Amount] for each order that is delivered, whatever its
// distance or total. An attempt that ends before costs nothing: its fee is
// voided.
//
// Limits: the handlers run in the transaction of a consumer group and rely on it
// for each event's one effect. Fees are the books: nothing here deletes them.
package billing

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/faults"
)

// Outbox puts events into the batch that writes the facts they tell.
type Outbox interface {
	Queue(ctx context.Context, b *pgx.Batch, events ...event.Data) error
}

// Faults breaks billing on purpose; see package faults.
type Faults interface {
	Fails(name string, id ...string) bool
	Delay(name string) time.Duration
	Poisoned(ctx context.Context, name string, event uuid.UUID) (bool, error)
}

// Config is what may be set; its zero value works.
type Config struct {
	// Amount is the fee of an order in centavos, [DefaultAmount] if zero.
	Amount int64
	// Faults are none if nil.
	Faults Faults
	// Now is the clock, time.Now if nil.
	Now func() time.Time
}

// DefaultAmount is the fee of an order, in centavos.
const DefaultAmount = 450

// Currency of every fee: the product works in Brazil.
const Currency = "BRL"

// Ledger keeps fees. It is safe for concurrent use.
type Ledger struct {
	pool   *pgxpool.Pool
	outbox Outbox
	amount int64
	faults Faults
	now    func() time.Time
}

// New makes a ledger on a migrated database.
func New(pool *pgxpool.Pool, outbox Outbox, cfg Config) *Ledger {
	l := &Ledger{pool: pool, outbox: outbox, amount: cfg.Amount, faults: cfg.Faults, now: cfg.Now}
	if l.amount <= 0 {
		l.amount = DefaultAmount
	}
	if l.faults == nil {
		l.faults = faults.None{}
	}
	if l.now == nil {
		l.now = time.Now
	}
	return l
}

// Subscribe gives a group, named billing, the handlers.
func (l *Ledger) Subscribe(g *consumer.Group) {
	consumer.On(g, l.Reserved)
	consumer.On(g, l.Released)
	consumer.On(g, l.NotificationFailed)
}

// Topics is what this module owns in the broker.
func Topics() []broker.Topic {
	return []broker.Topic{{
		Name:           "billing.events",
		Partitions:     6,
		Retention:      7 * 24 * time.Hour,
		RetentionBytes: 1 << 30,
	}}
}
