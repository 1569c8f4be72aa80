// Package app is the wiring room: the only place where engines, roles and the
// product meet. Everything else takes what it needs as parameters.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/waybillhq/waybill/internal/config"
)

// Roles that an App can play, in the order they start.
const (
	RoleAnalytics = "analytics" // read models from the log
	RoleRelay     = "relay"     // outbox to log
	RoleAPI       = "api"       // HTTP, pages and live push
)

// Roles is every role.
func Roles() []string { return []string{RoleAnalytics, RoleRelay, RoleAPI} }

// App is a running Waybill.
type App struct {
	cfg      config.Config
	log      *slog.Logger
	metrics  *prometheus.Registry
	stack    *stack
	lock     *dirLock
	engines  *engines
	started  time.Time
	httpAddr string
	demoKey  string
}

// Start brings up the engines that cfg leaves to us and then the roles. It
// returns when the first order can be served. What it started is stopped again
// if it fails.
func Start(ctx context.Context, cfg config.Config, log *slog.Logger, roles ...string) (*App, error) {
	for _, r := range roles {
		if !slices.Contains(Roles(), r) {
			return nil, fmt.Errorf("unknown role %q: want one of %v", r, Roles())
		}
	}
	a := newApp(cfg, log)
	if err := a.start(ctx, roles); err != nil {
		return nil, errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
	}
	return a, nil
}

func newApp(cfg config.Config, log *slog.Logger) *App {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &App{cfg: cfg, log: log, metrics: reg, stack: newStack(log), started: time.Now()}
}

func (a *App) start(ctx context.Context, roles []string) (err error) {
	if a.managesSomething() {
		if a.lock, err = lockDir(a.cfg.Dir); err != nil {
			return err
		}
	}
	if a.engines, err = a.startEngines(ctx); err != nil {
		return err
	}
	p, err := a.prepare(ctx)
	if err != nil {
		return err
	}
	for _, role := range Roles() {
		if !slices.Contains(roles, role) {
			continue
		}
		if err := a.startRole(ctx, role, p); err != nil {
			return fmt.Errorf("start %s: %w", role, err)
		}
	}
	return nil
}

// managesSomething tells whether an engine's data lies in our folder.
func (a *App) managesSomething() bool {
	return a.cfg.DatabaseURL == "" || len(a.cfg.Brokers) == 0
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
// any more, what was committed is relayed, and only then do the engines go.
func (a *App) Stop(ctx context.Context) error {
	err := a.stack.stop(ctx)
	if a.lock != nil {
		err = errors.Join(err, a.lock.release())
	}
	return err
}
