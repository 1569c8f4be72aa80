package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/embedded"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

// engines is what everything stands on, ours or somebody else's.
type engines struct {
	dsn      string
	db       *pgxpool.Pool
	modules  map[string]*pgxpool.Pool // by schema, once their tables are there
	suspend  func(yes bool)           // makes an outage of a broker of our own; nil of another's
	broker   broker.Config
	caps     broker.Capabilities
	registry *registry.Client
}

// startEngines starts or connects Postgres on one side, broker and registry on
// the other, side by side: neither needs the other.
func (a *App) startEngines(ctx context.Context) (*engines, error) {
	e := &engines{}
	var stopDB, stopLog func(context.Context) error
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { stopDB, err = a.startDatabase(gctx, e); return err })
	g.Go(func() (err error) { stopLog, err = a.startLog(gctx, e); return err })
	err := g.Wait()
	// Registered in this order whichever was up first, so that the stop is
	// always the same.
	if stopDB != nil {
		a.stack.onStop("postgres", stopDB)
	}
	if stopLog != nil {
		a.stack.onStop("broker and registry", stopLog)
	}
	return e, err
}

// startDatabase gives a pool on the configured database, or on a server of our
// own.
func (a *App) startDatabase(ctx context.Context, e *engines) (stop func(context.Context) error, err error) {
	stop = func(context.Context) error { return nil }
	e.dsn = a.cfg.DatabaseURL
	if e.dsn == "" {
		srv, err := local.Start(ctx, local.Config{
			Dir: filepath.Join(a.cfg.Dir, "postgres"), Port: a.cfg.PostgresPort, Logger: a.log,
			Roles: moduleRoles(),
		})
		if err != nil {
			return nil, flagHint(err, "--postgres-port")
		}
		go func() {
			<-srv.Done()
			a.stack.fail(fmt.Errorf("postgres ended: %w", srv.Err()))
		}()
		stop, e.dsn = srv.Stop, srv.DSN()
	}
	e.db, err = pg.Open(ctx, e.dsn, pg.Config{MaxConns: a.connections()})
	if err != nil {
		return stop, namedBy(err, a.cfg.DatabaseURL != "", config.EnvDatabaseURL)
	}
	stopServer := stop
	return func(ctx context.Context) error {
		closePool(ctx, e.db)
		return stopServer(ctx)
	}, a.checkPool(ctx, e.db)
}

// closePool waits for connections that are in use, but not for ever: the
// server's stop ends them.
func closePool(ctx context.Context, db *pgxpool.Pool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		db.Close()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// startLog gives broker and registry, configured or of our own.
func (a *App) startLog(ctx context.Context, e *engines) (stop func(context.Context) error, err error) {
	stack := newStack(a.log)
	stack.failed = a.stack.failed // one that fails ends the whole program
	defer func() {
		if err != nil {
			err = errors.Join(err, stack.stop(context.WithoutCancel(ctx)))
		}
	}()
	if err := a.startBroker(ctx, e, stack); err != nil {
		return nil, err
	}
	if err := a.startRegistry(ctx, e, stack); err != nil {
		return nil, err
	}
	return stack.stop, nil
}

func (a *App) startBroker(ctx context.Context, e *engines, stack *stack) (err error) {
	if len(a.cfg.Brokers) > 0 {
		e.broker = broker.Config{
			Brokers: a.cfg.Brokers, TLS: a.cfg.KafkaTLS, SASL: a.cfg.KafkaSASL, Logger: a.log, Outages: broker.NewOutages(),
		}
		e.caps, err = a.meetBroker(ctx, e.broker)
		return namedBy(err, true, config.EnvBrokers)
	}
	b, err := embedded.Start(ctx, embedded.Config{
		Dir: filepath.Join(a.cfg.Dir, "broker"), Listen: a.cfg.KafkaListen,
		Advertise: a.cfg.KafkaAdvertise, Logger: a.log,
	})
	if err != nil {
		return flagHint(err, "--kafka-listen")
	}
	e.broker, e.caps = b.Client(), b.Capabilities()
	e.broker.Outages = broker.NewOutages()
	e.suspend = b.Suspend
	stack.onStop("broker", func(context.Context) error { return b.Close() }) //nolint:contextcheck // what it ends has no context of its own
	stack.run(ctx, "broker's log", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-b.Failed():
			return b.Err()
		}
	})
	return nil
}

func (a *App) startRegistry(ctx context.Context, e *engines, stack *stack) (err error) {
	url := a.cfg.RegistryURL
	if url == "" {
		if url, err = a.serveRegistry(ctx, e, stack); err != nil {
			return err
		}
	}
	e.registry, err = registry.New(url, registry.Config{
		Username: a.cfg.RegistryUser, Password: a.cfg.RegistrySecret, BearerToken: a.cfg.RegistryBearer,
	})
	return err
}

func (a *App) serveRegistry(ctx context.Context, e *engines, stack *stack) (url string, err error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", a.cfg.RegistryListen)
	if err != nil {
		return "", flagHint(fmt.Errorf("registry: %w", err), "--registry-listen")
	}
	reg := server.New(e.broker, server.Config{Capabilities: e.caps, Logger: a.log, Auth: a.registryAuth()})
	stack.run(ctx, "registry", reg.Run)
	serve(stack, "registry http", &http.Server{
		Handler: reg, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, MaxHeaderBytes: 32 << 10,
	}, ln)
	select {
	case <-reg.Ready():
	case err := <-stack.failed:
		return "", err
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return "http://" + ln.Addr().String(), nil
}

// registryAuth is what a registry of our own asks for: the credentials that
// are configured for the registry, which are ours then.
func (a *App) registryAuth() server.Auth {
	var auth server.Auth
	if a.cfg.RegistryUser != "" {
		auth.Users = map[string]string{a.cfg.RegistryUser: a.cfg.RegistrySecret}
	}
	if a.cfg.RegistryBearer != "" {
		auth.Tokens = []string{a.cfg.RegistryBearer}
	}
	return auth
}

// namedBy adds what names an engine that is another's.
func namedBy(err error, others bool, variable string) error {
	if err == nil || !others {
		return err
	}
	return fmt.Errorf("%w; it is named by %s or the configuration file", err, variable)
}

// flagHint adds which flag moves an address that is taken or cannot be had.
func flagHint(err error, flag string) error {
	var op *net.OpError
	if errors.Is(err, syscall.EADDRINUSE) || errors.As(err, &op) && op.Op == "listen" {
		return fmt.Errorf("%w; choose another with %s", err, flag)
	}
	return err
}
