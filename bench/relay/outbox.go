package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
)

// Outbox is where the relay reads: tables and topics made for a measurement,
// and the writers to them.
type Outbox struct {
	engines   *engine.Engines
	mode      mode
	contracts map[string]*event.Contract // by the short name of their topic
}

// NewOutbox makes the outbox's tables, the procedure that fills it, and topics
// of short names with their contracts.
func NewOutbox(ctx context.Context, e *engine.Engines, mode string, names ...string) (*Outbox, error) {
	o := &Outbox{engines: e, mode: modes[mode], contracts: map[string]*event.Contract{}}
	if err := pg.Migrate(ctx, e.DB, tables.Migration()); err != nil {
		return nil, err
	}
	if err := tables.EnsureDays(ctx, e.DB, time.Now()); err != nil {
		return nil, err
	}
	if _, err := e.DB.Exec(ctx, fillProcedure); err != nil {
		return nil, fmt.Errorf("make the procedure that fills the outbox: %w", err)
	}
	var topics []string
	for _, name := range names {
		c, err := contractOf(e.Name() + "." + name)
		if err != nil {
			return nil, err
		}
		o.contracts[name] = c
		topics = append(topics, c.Topic)
	}
	if err := o.writer().Declare(ctx, e.DB); err != nil {
		return nil, err
	}
	return o, e.Declare(ctx, topics...)
}

// Topic is the whole name of the topic with a short one.
func (o *Outbox) Topic(name string) string { return o.contracts[name].Topic }

func (o *Outbox) writer() *outbox.Outbox {
	var all []*event.Contract
	for _, c := range o.contracts {
		all = append(all, c)
	}
	return outbox.New(all, outbox.Config{})
}

// WriteOne gives what commits one event of a topic: an application's way: one round trip, a transaction that is over
// when it returns.
func (o *Outbox) WriteOne(name string) func(ctx context.Context, writer int, key string, sequence int64) error {
	ob, c, body := o.writer(), o.contracts[name], payload()
	return func(ctx context.Context, _ int, key string, sequence int64) error {
		data := &parcel{Payload: body, contract: c, key: key, sequence: sequence}
		var b pgx.Batch
		if o.mode.table {
			if err := ob.Queue(ctx, &b, data); err != nil {
				return err
			}
		} else if err := emit(ctx, &b, data); err != nil {
			return err
		}
		return o.engines.DB.SendBatch(ctx, &b).Close()
	}
}
