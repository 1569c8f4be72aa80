package app

import (
	"context"
	"time"

	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/pg"
)

// startCDC publishes the changes of tables. Nobody waits for it: its tables,
// slot and snapshots come while requests are served.
func (a *App) startCDC(ctx context.Context) error {
	if a.cfg.CDC.Off {
		a.warnOfIdleSlot(ctx)
		return nil
	}
	c := cdc.New(a.engines.db, a.engines.broker.Client, a.engines.registry, cdc.Config{
		Tables: a.changeTables(), Capabilities: a.engines.caps, Linger: a.changeLinger(), Logger: a.log, Registerer: a.metrics,
	})
	a.stack.run(ctx, RoleCDC, func(ctx context.Context) error {
		if !a.migrateCDC(ctx) {
			return nil
		}
		return c.Run(ctx)
	})
	return nil
}

// changeLinger: nobody waits for a change as for an event, and on our own broker
// each batch waits for the disk that both share.
func (a *App) changeLinger() time.Duration {
	if a.engines.caps.Transactions { // a Kafka, or its equal
		return 0
	}
	return 100 * time.Millisecond
}

// migrateCDC is not among the migrations that a start waits for. It is false
// if ctx ended before they could be done.
func (a *App) migrateCDC(ctx context.Context) bool {
	for {
		err := pg.Migrate(ctx, a.engines.db, cdc.Migration())
		if err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
			a.log.WarnContext(ctx, "no changes are published yet", "error", err)
		}
	}
}

// warnOfIdleSlot: a slot that nobody reads keeps WAL for ever.
func (a *App) warnOfIdleSlot(ctx context.Context) {
	s, err := cdc.ReadStatus(ctx, a.engines.db, "")
	if err == nil && s.Slot.Exists && !s.Slot.Active {
		a.log.WarnContext(ctx, "change data capture is off and its slot is still there, for which the database keeps WAL: waybill cdc drop",
			"slot", s.Slot.Name)
	}
}

// changeTables are the configured tables, or those of the product if none are.
func (a *App) changeTables() []cdc.Table {
	if len(a.cfg.CDC.Tables) == 0 {
		return orders.Changes()
	}
	var tables []cdc.Table
	for _, t := range a.cfg.CDC.Tables {
		schema, name := t.Split()
		tables = append(tables, cdc.Table{
			Schema: schema, Name: name, Topic: t.Topic, Columns: t.Columns, TenantColumn: t.TenantColumn,
		})
	}
	return tables
}
