package app

import (
	"context"
	"time"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/analytics/columnar"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/projection/clickhouse"
)

// analyticsWorkers is their number unless it follows the lag. Their handler
// takes what there is in one transaction: load makes larger
// batches, which spares more than doing several at once would win, and two
// would wait for each other's counts.
func analyticsWorkers() int { return 1 }

// figures is what the API reads, whatever keeps it.
type figures interface {
	api.Analytics
	api.Counts
}

// figures are read from where analytics are kept.
func (a *App) figures() (figures, error) {
	if a.cfg.Analytics.Sink != config.SinkClickHouse {
		return analytics.New(a.engines.db), nil
	}
	store, err := a.openClickHouse()
	if err != nil {
		return nil, err
	}
	return columnar.New(store.Conn()), nil
}

// startAnalytics keeps the log of events and the read models.
func (a *App) startAnalytics(ctx context.Context, p *product) error {
	if a.cfg.Analytics.Sink == config.SinkClickHouse {
		return a.startClickHouse(ctx, p)
	}
	log := a.eventLog()
	g := consumer.New(consumer.Deps{DB: a.engines.db, Client: a.engines.broker.Client, Decoder: p.decoder},
		consumer.Config{
			Group: RoleAnalytics, Metrics: a.metrics, Logger: a.log, Workers: analyticsWorkers(), Gather: gatherFor, Places: a.places(),
		})
	projection.Subscribe(g, p.decoder, analytics.NewProjector(log, p.decoder), analytics.Sources()...)
	a.stack.run(ctx, "days of the log of events", log.Run)
	a.stack.run(ctx, "old figures", func(ctx context.Context) error {
		return analytics.Prune(ctx, a.engines.db, func(err error) { a.log.WarnContext(ctx, "old figures", "error", err) })
	})
	a.stack.run(ctx, RoleAnalytics, g.Run)
	return a.follow(ctx, g, RoleAnalytics)
}

func (a *App) eventLog() *projection.Log {
	return projection.NewLog(a.engines.db, projection.LogConfig{KeepDays: a.cfg.Analytics.KeepDays, Logger: a.log})
}

// groupClickHouse is a group of its own, so that who changes from one sink to the
// other has the new one filled from what the topics keep.
const groupClickHouse = RoleAnalytics + "-clickhouse"

// clickHouseWorkers hold a connection of Postgres each while ClickHouse works;
// what they have at the same time is one insert.
const clickHouseWorkers = 4

// startClickHouse keeps the log of events in ClickHouse. While that is out of
// reach it waits: nothing else of the program depends on it.
func (a *App) startClickHouse(ctx context.Context, p *product) error {
	store, err := a.openClickHouse()
	if err != nil {
		return err
	}
	g := consumer.New(consumer.Deps{DB: a.engines.db, Client: a.engines.broker.Client, Decoder: p.decoder},
		consumer.Config{
			Group: groupClickHouse, Metrics: a.metrics, Logger: a.log, Workers: clickHouseWorkers, MaxBatch: 5000, Infrastructure: clickhouse.Infrastructure,
		})
	projection.Subscribe(g, p.decoder, store, analytics.Sources()...)
	a.stack.run(ctx, RoleAnalytics, func(ctx context.Context) error {
		if err := a.prepareClickHouse(ctx, store); err != nil {
			return nil //nolint:nilerr // ctx ended: asked to stop before it was up
		}
		return g.Run(ctx)
	})
	return nil
}

// prepareClickHouse makes the table as soon as ClickHouse answers. It fails only
// with ctx.
func (a *App) prepareClickHouse(ctx context.Context, store *clickhouse.Store) error {
	for told := false; ; told = true {
		err := store.Prepare(ctx)
		if err == nil {
			return nil
		}
		if !told && ctx.Err() == nil {
			a.log.WarnContext(ctx, "waiting for ClickHouse: see that it runs at analytics.clickhouse.url or "+config.EnvClickHouse, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// openClickHouse is one for the whole program.
func (a *App) openClickHouse() (*clickhouse.Store, error) {
	if a.clickhouse != nil {
		return a.clickhouse, nil
	}
	c := a.cfg.Analytics.ClickHouse
	store, err := clickhouse.Open(c.URL, clickhouse.Config{KeepDays: c.KeepDays, Logger: a.log})
	if err != nil {
		return nil, err
	}
	a.clickhouse = store
	a.stack.onStop("connections of ClickHouse", func(context.Context) error { return store.Close() })
	return store, nil
}
