package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/api"
)

// opsPorts is how many ports are tried where nobody named one: each process of
// a machine has its own.
const opsPorts = 100

// startOps serves /metrics, /healthz and /readyz on an address of their own. It
// does so first, so that a start that takes long, or never ends, can be seen.
func (a *App) startOps(ctx context.Context, ready ...api.Check) error {
	if a.cfg.MetricsListen == config.MetricsOff {
		return nil
	}
	ln, err := listenOps(ctx, a.cfg.MetricsListen)
	if err != nil {
		return flagHint(err, "--metrics-listen, or switch it off with --metrics-listen off")
	}
	a.opsAddr = ln.Addr().String()
	mux := http.NewServeMux()
	o := api.Operator{Ready: ready, Logger: a.log, Metrics: promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{})}
	o.Routes(mux)
	serve(a.stack, "metrics", &http.Server{
		Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
	}, ln)
	return nil
}

// listenOps listens on the address that was asked for, or else on the default
// one or the next that is free.
func listenOps(ctx context.Context, asked string) (net.Listener, error) {
	var lc net.ListenConfig
	if asked != "" {
		return lc.Listen(ctx, "tcp", asked)
	}
	host, text, err := net.SplitHostPort(config.DefaultMetricsListen)
	if err != nil {
		return nil, err
	}
	first, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	for port := first; ; port++ {
		ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || port == first+opsPorts {
			return ln, err
		}
	}
}

// OpsAddress is where metrics and health are served, as HOST:PORT; empty if they
// are not, or on the API's address alone.
func (a *App) OpsAddress() string { return a.opsAddr }

var errStarting = errors.New("still starting")

// ask is a check that fails until the process has started: what it asks is then
// there.
func (a *App) ask(name string, ask func(context.Context) error) api.Check {
	return api.Check{Name: name, Ask: func(ctx context.Context) error {
		if !a.up.Load() {
			return errStarting
		}
		return ask(ctx)
	}}
}

func (a *App) pingDatabase(ctx context.Context) error { return a.engines.db.Ping(ctx) }

func (a *App) pingOwnBroker(ctx context.Context) error { return a.pingBroker(ctx, a.engines.broker) }

func (a *App) pingRegistry(ctx context.Context) error {
	if _, err := a.engines.registry.Subjects(ctx, ""); err != nil {
		return fmt.Errorf("ask the registry: %w", err)
	}
	return nil
}
