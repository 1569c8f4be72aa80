package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/notify"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/logistica/tracking"
	"github.com/waybillhq/waybill/outbox/later"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/push"
)

func (a *App) startRole(ctx context.Context, role string, p *product) error {
	switch role {
	case RoleOrders:
		a.startOrders(ctx, p)
		return nil
	case RoleCouriers:
		a.startCouriers(ctx, p)
		return nil
	case RoleBilling:
		a.startBilling(ctx, p)
		return nil
	case RoleDispatch:
		a.startDispatch(ctx, p)
		return nil
	case RoleTracking:
		a.startTracking(ctx, p)
		return nil
	case RoleSaga:
		return a.startSaga(ctx, p)
	case RoleAnalytics:
		return a.startAnalytics(ctx, p)
	case RoleWebhook:
		return a.startWebhooks(ctx, p)
	case RoleRelay:
		return a.startRelay(ctx)
	case RoleAPI:
		return a.startAPI(ctx, p)
	case RoleCDC:
		return a.startCDC(ctx)
	case RoleMonitor:
		return a.startMonitor(ctx)
	case RoleQueue:
		return a.startQueues(ctx, p)
	}
	return fmt.Errorf("unknown role %q", role)
}

// startRelay carries the outbox to the log and keeps its tables in days.
func (a *App) startRelay(ctx context.Context) error {
	r := relay.New(a.engines.db, a.engines.broker.Client, a.engines.registry,
		relay.Config{
			Mode: relay.Mode(a.cfg.Outbox.Relay), ExactlyOnce: a.cfg.Outbox.ExactlyOnce,
			Logger: a.log, Registerer: a.metrics,
		})
	a.stack.run(ctx, "outbox days", func(ctx context.Context) error {
		return tables.KeepDays(ctx, a.engines.db, a.log)
	})
	a.stack.run(ctx, "outbox retention", tables.NewRetention(a.engines.db, a.retention()).Run)
	a.stack.run(ctx, "outbox later", later.New(a.engines.db, later.Config{
		Messages: relay.Mode(a.cfg.Outbox.Relay) == relay.Message, Logger: a.log, Registerer: a.metrics,
	}).Run)
	a.stack.run(ctx, RoleRelay, r.Run)
	return nil
}

// startAPI serves HTTP: the product's API, its pages and the live streams.
func (a *App) startAPI(ctx context.Context, p *product) error {
	var hub *push.Hub // is there before anybody can ask for a key's end
	directory := tenants.New(a.engines.db, tenants.Config{Changed: func() { hub.Recheck() }})
	if err := a.seedDemo(ctx, directory); err != nil {
		return err
	}
	delays := api.NewDelays()
	hub, err := push.New(a.engines.broker.Client, push.Config{
		Topics: notify.Topics(), LatestTopics: notify.LatestTopics(), Route: a.timed(notify.Route(p.decoder), delays), Key: p.pushKey,
		// One merchant's streams, its customers' included, leave room for others'.
		KeyOf: func(r *http.Request) string { return event.Tenant(r.Context()) }, MaxPerKey: 10_000,
		Left:   directory.Left,
		Logger: a.log, Registerer: a.metrics,
	})
	if err != nil {
		return err
	}
	store := orders.New(a.dbOf(RoleOrders), p.outbox, orders.Config{})
	duty := couriers.New(a.dbOf(RoleCouriers), p.outbox, couriers.Config{Logger: a.log})
	telemetry, err := couriers.NewTelemetry(
		couriers.TelemetryDeps{DB: a.dbOf(RoleCouriers), Client: a.engines.broker.Client, Schemas: a.engines.registry},
		couriers.TelemetryConfig{Registerer: a.metrics, Logger: a.log})
	if err != nil {
		return err
	}
	a.stack.run(ctx, "telemetry", telemetry.Run)
	figures, err := a.figures()
	if err != nil {
		return err
	}
	handler, err := api.New(api.Deps{
		Orders: store, Directory: directory, Counts: figures, Analytics: figures, Streams: hub,
		Tenants: directory, Keys: directory,
		Duty: duty, Fleet: duty, Jobs: store, Telemetry: telemetry, Couriers: cards{duty}, Reassigner: duty,
		Positions: tracking.New(a.dbOf(RoleTracking), tracking.Config{}), Faults: a.faultFlags(ctx),
		Pages: a.pages(p), Ready: a.checks(hub), Logger: a.log, Registerer: a.metrics,
		Metrics: promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{}), Monitor: a.monitorHandler(),
	}, api.Config{
		FaultsOf: a.demonstrator(), MaxInFlight: a.cfg.API.MaxInFlight, MaxPerCaller: a.cfg.API.MaxPerCaller,
		AtWork: a.cfg.API.AtWork, AtWorkPerCaller: a.cfg.API.AtWorkPerCaller, Rate: a.cfg.API.Rate, Burst: a.cfg.API.Burst,
		Assured: a.cfg.API.Assured, Delays: delays,
	})
	if err != nil {
		return err
	}
	if handler, err = a.withQueues(ctx, handler, directory); err != nil {
		return err
	}
	if handler, err = a.withSagas(handler, directory); err != nil {
		return err
	}
	if handler, err = a.withWebhooks(handler, directory); err != nil {
		return err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", a.cfg.Listen)
	if err != nil {
		return flagHint(err, "--listen")
	}
	a.httpAddr = ln.Addr().String()
	serve(a.stack, "http", api.NewServer(handler), ln)
	// After the server, so that it stops before: an open stream would hold the
	// server's shutdown up.
	a.stack.run(ctx, "push", hub.Run)
	select {
	case <-hub.Ready():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case err := <-a.stack.failed:
		return err
	}
}

// checks is what /readyz asks.
func (a *App) checks(streams *push.Hub) []api.Check {
	return []api.Check{
		{Name: "postgres", Ask: a.engines.db.Ping},
		{Name: "broker", Ask: func(ctx context.Context) error { return a.pingBroker(ctx, a.engines.broker) }},
		{Name: "streams", Ask: streams.Loaded},
	}
}

// meetBroker asks a broker that runs elsewhere what it can do: it may be another
// waybill's, which can less than Kafka.
func (a *App) meetBroker(ctx context.Context, cfg broker.Config) (caps broker.Capabilities, err error) {
	cl, err := reachBroker(ctx, cfg)
	if err != nil {
		return caps, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, brokerMayTake)
	defer cancel()
	return broker.AskCapabilities(ctx, cl)
}

func (a *App) pingBroker(ctx context.Context, cfg broker.Config) error {
	cl, err := reachBroker(ctx, cfg)
	if err == nil {
		cl.Close()
	}
	return err
}

// brokerMayTake bounds a question to the broker.
const brokerMayTake = 10 * time.Second

func reachBroker(ctx context.Context, cfg broker.Config) (*kgo.Client, error) {
	cl, err := cfg.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, brokerMayTake)
	defer cancel()
	if err := cl.Ping(ctx); err != nil {
		cl.Close()
		return nil, fmt.Errorf("no broker answers at %v: %w", cfg.Brokers, err)
	}
	return cl, nil
}

// checkExactlyOnce refuses, before anything is made on the engines, what the
// broker cannot do.
func (a *App) checkExactlyOnce(roles []string) error {
	if slices.Contains(roles, RoleRelay) && a.cfg.Outbox.ExactlyOnce && !a.engines.caps.Transactions {
		return errors.New("outbox.exactly_once needs a broker whose transactions survive a crash, which the embedded one's do not: point " + config.EnvBrokers + " at Kafka, or leave it off")
	}
	return nil
}
