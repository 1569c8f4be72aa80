package analytics

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/projection"
)

// Sources are the topics that tell of deliveries. Of couriers' events only their
// duty is read: positions are fifty times as many, and tell nothing here.
func Sources() []projection.Source {
	return []projection.Source{
		{Topic: "orders.events"},
		{Topic: "couriers.reservations"},
		{Topic: "billing.events"},
		{Topic: "dispatch.events"},
		{Topic: "couriers.events", Filter: consumer.Filter{Types: []string{"logistica.couriers.CourierStatusChanged"}}},
	}
}

// Projector keeps the log of events and the tables of this package. Give it to
// projection.Subscribe with [Sources]. One transaction at a time is as fast as
// any: more of them would wait for each other's counts. Two processes have
// different partitions, and so lanes, which are those of a set's first event.
type Projector struct {
	log     *projection.Log
	decoder consumer.Decoder
}

// NewProjector makes a projector whose events are read by decoder.
func NewProjector(log *projection.Log, decoder consumer.Decoder) *Projector {
	return &Projector{log, decoder}
}

// Write appends the events to the log, and adds those that are new to it to the
// tables: two round trips, a third where couriers changed their duty.
func (p *Projector) Write(ctx context.Context, tx pgx.Tx, es []projection.Event) error {
	fresh, err := p.log.Append(ctx, tx, es)
	if err != nil || len(fresh) == 0 {
		return err
	}
	d := newDelta(fresh[0].Partition)
	for i := range fresh {
		if err := p.add(ctx, d, &fresh[i]); err != nil {
			return err
		}
	}
	if err := d.readDuties(ctx, tx); err != nil {
		return err
	}
	return d.write(ctx, tx)
}

func (p *Projector) add(ctx context.Context, d *delta, e *projection.Event) error {
	data, known := contracts.New(e.Type)
	if !known || !counted(data) {
		return nil // it is in the log; there is nothing to count
	}
	tenant, err := uuid.Parse(e.Tenant)
	if err != nil {
		return fmt.Errorf("count %s of %s: tenant %.64q: %w", e.Type, e.Subject, e.Tenant, err)
	}
	if err := p.decoder.Decode(ctx, e.Value, data, data.EventContract().Schema); err != nil {
		return fmt.Errorf("count %s of %s: %w: %w", e.Type, e.Subject, consumer.ErrUnreadable, err)
	}
	d.add(tenant, e.Time, data)
	return nil
}

// counted tells of which types there is more to keep than that they happened.
func counted(data event.Data) bool {
	switch data.(type) {
	case *contracts.OrderCreated, *contracts.OrderStatusChanged,
		*contracts.PlatformFeeBilled, *contracts.PlatformFeeVoided, *contracts.CourierStatusChanged:
		return true
	}
	return false
}
