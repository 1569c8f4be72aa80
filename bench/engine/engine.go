// Package engine gives a measurement what it runs on: Postgres, a broker and a
// schema registry, each started in a temporary folder or, where it is named,
// somebody's own.
//
// It promises to leave nothing behind but what Config says: in a Postgres of
// somebody's it works in a database of its own, and drops it.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
)

// Config names the engines that are somebody's own. What is empty is started.
type Config struct {
	// Program is Waybill's own binary, for `waybill broker`.
	Program string
	// DatabaseURL is a Postgres with wal_level logical and a role with
	// CREATEDB and REPLICATION.
	DatabaseURL string
	// Broker, if it names brokers.
	Broker broker.Config
	// RegistryURL of a registry, in which registered schemas stay.
	RegistryURL string
	// NoDatabase leaves Postgres out: DB stays nil.
	NoDatabase bool
}

// Engines are up until Close.
type Engines struct {
	DSN         string // of a database that is the measurement's alone
	DB          *pgxpool.Pool
	Broker      broker.Config
	Caps        broker.Capabilities
	RegistryURL string
	Postgres    string // the server's version

	name   string // of the database and of whatever else needs one nobody has
	dir    string
	admin  string // superuser's connection string, of our own server
	server *local.Server
	log    *child.Process // broker and registry
	others *pgxpool.Pool  // to somebody's Postgres, in the database they named
	topics []string       // made
	borrow bool           // the broker is somebody's
}

// Start starts what cfg leaves open. What it started is stopped again if it
// fails, or if ctx ends meanwhile.
func Start(ctx context.Context, cfg Config) (*Engines, error) {
	e := &Engines{
		name: "waybill_bench_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:10], Broker: cfg.Broker,
		Caps: broker.Kafka(), RegistryURL: cfg.RegistryURL, borrow: len(cfg.Broker.Brokers) > 0,
	}
	if err := e.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	return e, nil
}

func (e *Engines) start(ctx context.Context, cfg Config) (err error) {
	if e.dir, err = os.MkdirTemp("", "waybill-bench-"); err != nil {
		return err
	}
	if err := os.Chmod(e.dir, 0o755); err != nil { //nolint:gosec // Postgres' own user must pass through
		return err
	}
	if e.borrow {
		if err := e.ping(ctx); err != nil {
			return err
		}
	}
	if !e.borrow || cfg.RegistryURL == "" {
		if err := e.startLog(ctx, cfg); err != nil {
			return err
		}
	}
	if cfg.NoDatabase {
		return nil
	}
	if cfg.DatabaseURL == "" {
		err = e.startServer(ctx)
	} else {
		err = e.createDatabase(ctx, cfg.DatabaseURL)
	}
	if err != nil {
		return err
	}
	if e.DB, err = pg.Open(ctx, e.DSN, pg.Config{ApplicationName: "waybill bench"}); err != nil {
		return err
	}
	return e.DB.QueryRow(ctx, "SHOW server_version").Scan(&e.Postgres)
}

// slotKeep is the WAL a slot may hold up here. The reader that waits for its
// turn would else lose its slot to a large backlog.
const slotKeep = "20GB"

func (e *Engines) startServer(ctx context.Context) (err error) {
	e.server, err = local.Start(ctx, local.Config{
		Dir:      filepath.Join(e.dir, "postgres"),
		Settings: map[string]string{"max_slot_wal_keep_size": slotKeep},
	})
	if err != nil {
		return err
	}
	e.DSN, e.admin = e.server.DSN(), e.server.AdminDSN()
	if !e.borrow {
		return nil
	}
	return e.renameDatabase(ctx)
}

// Name is one that nobody else has, of lower-case letters, digits and _; 24
// bytes.
func (e *Engines) Name() string { return e.name }

// LogUsage is what our own broker has cost so far, with its registry; of
// somebody's it is unknown.
func (e *Engines) LogUsage() child.Usage {
	if e.log == nil {
		return child.Usage{}
	}
	return e.log.Usage()
}

// Env tells a Waybill started as a child where the engines are.
func (e *Engines) Env() []string {
	return []string{
		"WAYBILL_DATABASE_URL=" + e.DSN,
		"WAYBILL_KAFKA_BROKERS=" + strings.Join(e.Broker.Brokers, ","),
		"WAYBILL_REGISTRY_URL=" + e.RegistryURL,
	}
}

// closeTimeout bounds the removal of what is in somebody's Postgres, and the
// stop of our own.
const closeTimeout = 30 * time.Second

// Close stops and removes what Start made, also after ctx has ended.
func (e *Engines) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	var errs []error
	if e.DB != nil {
		e.DB.Close()
	}
	if e.borrow && len(e.topics) > 0 {
		if err := e.deleteTopics(ctx); err != nil {
			errs = append(errs, fmt.Errorf("topics %v are left in your broker, delete them yourself: %w", e.topics, err))
		}
	}
	if e.log != nil {
		errs = append(errs, e.log.Stop())
	}
	if e.others != nil {
		errs = append(errs, e.dropDatabase(ctx))
		e.others.Close()
	}
	if e.server != nil {
		errs = append(errs, e.server.Stop(ctx))
	}
	if e.dir != "" {
		if err := os.RemoveAll(e.dir); err != nil {
			errs = append(errs, fmt.Errorf("remove the measurement's folder: %w", err))
		}
	}
	return errors.Join(errs...)
}
