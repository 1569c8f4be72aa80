// Package app is the wiring room: the only place where engines, roles and the
// product meet. Everything else takes what it needs as parameters.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/lag"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/projection/clickhouse"
	"github.com/waybillhq/waybill/queue"
)

// Roles that an App can play, in the order they start.
const (
	RoleOrders    = "orders"    // what orders do about the other modules' events
	RoleCouriers  = "couriers"  // who rides, and for which order
	RoleBilling   = "billing"   // the platform's fee of each order
	RoleDispatch  = "dispatch"  // tells couriers
	RoleTracking  = "tracking"  // where couriers are who are out with an order
	RoleSaga      = "saga"      // watches that what modules do together is finished, or undone
	RoleAnalytics = "analytics" // read models from the log
	RoleWebhook   = "webhook"   // calls tenants' endpoints about events
	RoleRelay     = "relay"     // outbox to log
	RoleAPI       = "api"       // HTTP, pages and live push
	RoleCDC       = "cdc"       // changes of tables to log
	RoleQueue     = "queue"     // topics into queues, and the queues' upkeep
	RoleMonitor   = "monitor"   // lag of all groups, alerts, scaling advice
)

// Roles is every role.
func Roles() []string {
	return []string{RoleOrders, RoleCouriers, RoleBilling, RoleDispatch, RoleTracking, RoleSaga, RoleAnalytics, RoleWebhook, RoleRelay, RoleAPI, RoleCDC, RoleQueue, RoleMonitor}
}

// App is a running Waybill.
type App struct {
	cfg      config.Config
	log      *slog.Logger
	metrics  *prometheus.Registry
	stack    *stack
	lock     *dirLock
	engines  *engines
	monitor  *lag.Monitor // nil unless its role is played
	started  time.Time
	httpAddr string
	opsAddr  string
	up       atomic.Bool
	roles    []string
	demoKey  string
	signals  *queue.Signals   // made by the first role that needs them
	faults   *faults.Flags    // likewise
	hooks    *hooks           // likewise
	groups   *consumer.Places // likewise

	clickhouse *clickhouse.Store // likewise; nil where analytics are in Postgres
}

// Up brings up the engines that cfg leaves to us and then every role, with the
// data of both in cfg.Dir. It returns when the first order can be served. What
// it started is stopped again if it fails.
func Up(ctx context.Context, cfg config.Config, log *slog.Logger) (*App, error) {
	return begin(ctx, cfg, log, func(a *App) (err error) {
		if a.lock, err = lockDir(cfg.Dir); err != nil {
			return err
		}
		if err := a.portsFree(ctx); err != nil {
			return err
		}
		return a.startRoles(ctx, Roles())
	})
}

// Run plays roles, some of Roles, against engines that run elsewhere, all of
// which cfg names.
func Run(ctx context.Context, cfg config.Config, log *slog.Logger, roles ...string) (*App, error) {
	return begin(ctx, cfg, log, func(a *App) error {
		if err := a.startOps(ctx, a.ask("postgres", a.pingDatabase), a.ask("broker", a.pingOwnBroker)); err != nil {
			return err
		}
		return a.startRoles(ctx, roles)
	})
}

// Broker runs broker and registry alone.
func Broker(ctx context.Context, cfg config.Config, log *slog.Logger) (*App, error) {
	cfg.Brokers, cfg.RegistryURL = nil, ""
	return begin(ctx, cfg, log, func(a *App) (err error) {
		if a.lock, err = lockDir(cfg.Dir); err != nil {
			return err
		}
		if err := a.startOps(ctx, a.ask("broker", a.pingOwnBroker), a.ask("registry", a.pingRegistry)); err != nil {
			return err
		}
		a.engines = &engines{}
		stop, err := a.startLog(ctx, a.engines)
		if err == nil {
			a.stack.onStop("broker and registry", stop)
		}
		return err
	})
}

func begin(ctx context.Context, cfg config.Config, log *slog.Logger, start func(*App) error) (*App, error) {
	a := newApp(cfg, log)
	err := start(a)
	if err == nil {
		a.up.Store(true)
		return a, nil
	}
	if ctx.Err() != nil { // whatever failed, failed of this
		log.DebugContext(ctx, "stopping before it was up", "error", err)
		err = errors.New("asked to stop before it was up")
	}
	return nil, errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
}

func newApp(cfg config.Config, log *slog.Logger) *App {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &App{cfg: cfg, log: log, metrics: reg, stack: newStack(log), started: time.Now()}
}

func (a *App) startRoles(ctx context.Context, roles []string) (err error) {
	a.roles = roles
	if err := errors.Join(checkScale(a.cfg.Scale), a.checkWebhookKey()); err != nil {
		return err
	}
	if a.engines, err = a.startEngines(ctx); err != nil {
		return err
	}
	if err := a.checkExactlyOnce(roles); err != nil {
		return err
	}
	p, err := a.prepare(ctx)
	if err != nil {
		return err
	}
	if err := a.newMonitor(roles); err != nil {
		return err
	}
	a.startGate(ctx, p.gate, roles)
	if p.notifier != nil {
		a.stack.run(ctx, "outbox notifier", p.notifier.Run)
	}
	for _, role := range Roles() { // in their order, whatever the caller's
		if !slices.Contains(roles, role) {
			continue
		}
		if err := a.startRole(ctx, role, p); err != nil {
			return fmt.Errorf("start %s: %w", role, err)
		}
	}
	a.gateOpens(ctx, p.gate)
	return a.startSim(ctx, p)
}

// Wait returns nil when ctx ends, or the error of the first part that failed.
func (a *App) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.stack.failed:
		return err
	}
}

// Stop stops everything in the reverse order of its start: no request is taken
// any more, what the relay has read is published, and only then do the engines
// go. What it had not read yet is published after the next start.
func (a *App) Stop(ctx context.Context) error {
	err := a.stack.stop(ctx)
	if a.lock != nil {
		err = errors.Join(err, a.lock.release())
	}
	return err
}
