// Package dispatch tells couriers of the orders they were reserved for, once the
// fee is billed.
//
// Telling a courier is two things: the event CourierNotified, which package
// push's hub reads from its topic and turns into a wake-up on the courier's
// channel, and the notice, a row that the courier's page reads when it wakes or
// is opened. Neither is lost by a phone without a signal: the page finds the
// notice when it comes back. A [Sender] of another kind, such as a gateway for
// text messages, is asked before that, and if it cannot send the courier counts
// as not told.
//
// Promise: an order has at most one notice that stands, held by a constraint,
// and none once its courier was released or its fee voided. The facts it hears
// of come from several topics, so in any order and more than once; what stands in
// the end is the same for all of them. A release or a void that comes before the
// fee bars the notice. What it says of an order is numbered 1, 2, 3, … without
// gaps, and commits with what it says.
//
// Limits: what a Sender sent cannot be taken back, and after a crash it is asked
// again for the same order and attempt. A notice that was withdrawn is only gone
// from the courier's page. A notice that stands says that its courier was told,
// not that the order is still on its way: that is package orders' to say.
package dispatch

import (
	"context"
	"time"

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

// Faults breaks dispatch on purpose; see package faults.
type Faults interface {
	Fails(name string, id ...string) bool
	Delay(name string) time.Duration
}

// Config is what may be set; its zero value works.
type Config struct {
	// Sender tells couriers besides the product's own way, which is [InProduct]
	// and what it is if nil.
	Sender Sender
	// Tries bounds how often the sender is asked about one notice, 3 if zero.
	Tries int
	// SendWithin bounds each try, 3 s if zero, and Pause is between the first two,
	// twice that between the next: 200 ms if zero. All tries together have 20 s,
	// less than a handler has.
	SendWithin, Pause time.Duration
	// MaxSending bounds the tries under way, those included that go on though
	// their time is over; past it a notice fails at once. 64 if zero.
	MaxSending int
	// Faults are none if nil.
	Faults Faults
	// Now is the clock, time.Now if nil.
	Now func() time.Time
}

// Desk tells couriers. It is safe for concurrent use.
type Desk struct {
	pool    *pgxpool.Pool
	outbox  Outbox
	cfg     Config
	sending chan struct{}
}

// New makes a desk on a migrated database.
func New(pool *pgxpool.Pool, outbox Outbox, cfg Config) *Desk {
	if cfg.Sender == nil {
		cfg.Sender = InProduct{}
	}
	if cfg.Tries <= 0 {
		cfg.Tries = 3
	}
	if cfg.SendWithin <= 0 {
		cfg.SendWithin = 3 * time.Second
	}
	if cfg.Pause <= 0 {
		cfg.Pause = 200 * time.Millisecond
	}
	if cfg.MaxSending <= 0 {
		cfg.MaxSending = 64
	}
	if cfg.Faults == nil {
		cfg.Faults = faults.None{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Desk{pool: pool, outbox: outbox, cfg: cfg, sending: make(chan struct{}, cfg.MaxSending)}
}

// Subscribe gives a group, named dispatch, the handlers. Its Timeout must leave
// the tries their 20 s, as the default does.
func (d *Desk) Subscribe(g *consumer.Group) {
	consumer.OnPrepared(g, d.Send, d.Billed)
	consumer.On(g, d.Voided)
	consumer.On(g, d.Released)
}

// Topics is what this module owns in the broker.
func Topics() []broker.Topic {
	return []broker.Topic{{
		Name:           "dispatch.events",
		Partitions:     6,
		Retention:      7 * 24 * time.Hour,
		RetentionBytes: 1 << 30,
	}}
}
