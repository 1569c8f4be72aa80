package app

import (
	"context"

	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/logistica/orders"
)

// startCDC publishes the changes of tables. Nobody waits for it: slot and
// snapshot come while requests are served.
func (a *App) startCDC(ctx context.Context) error {
	if a.cfg.CDC.Off {
		return nil
	}
	c := cdc.New(a.engines.db, a.engines.broker.Client, a.engines.registry, cdc.Config{
		Tables: a.changeTables(), Capabilities: a.engines.caps, Logger: a.log, Registerer: a.metrics,
	})
	a.stack.run(ctx, RoleCDC, c.Run)
	return nil
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
