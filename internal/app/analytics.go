package app

import (
	"context"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/projection"
)

// analyticsWorkers is their number unless it follows the lag. Their handler
// takes what there is of a partition in one transaction: load makes larger
// batches, which spares more than doing several at once would win, and two of
// one partition would wait for each other's counts.
func analyticsWorkers() int { return 1 }

// startAnalytics keeps the log of events and the read models.
func (a *App) startAnalytics(ctx context.Context, p *product) error {
	log := projection.NewLog(a.engines.db, projection.LogConfig{Logger: a.log})
	g := consumer.New(consumer.Deps{DB: a.engines.db, Client: a.engines.broker.Client, Decoder: p.decoder},
		consumer.Config{
			Group: RoleAnalytics, Metrics: a.metrics, Logger: a.log, Workers: analyticsWorkers(),
		})
	projection.Subscribe(g, p.decoder, analytics.NewProjector(log, p.decoder), analytics.Sources()...)
	a.stack.run(ctx, "days of the log of events", log.Run)
	a.stack.run(ctx, "old figures", func(ctx context.Context) error {
		return analytics.Prune(ctx, a.engines.db, func(err error) { a.log.WarnContext(ctx, "old figures", "error", err) })
	})
	a.stack.run(ctx, RoleAnalytics, g.Run)
	return a.follow(ctx, g, RoleAnalytics)
}
