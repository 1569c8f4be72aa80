package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/registry"
)

// askTimeout bounds the commands that ask and print.
const askTimeout = 15 * time.Second

// target is which engines a command talks to: flags first, then environment
// and file, then what a running `waybill up` in --dir wrote down (also how its
// relay reads), then the defaults of `waybill up`.
type target struct {
	cfg      config.Config
	dir      string
	brokers  []string
	registry string
	database string
	dirAsked func() bool // the caller named a folder
	guessed  bool        // nobody named the registry: it is the default one
	upDir    string      // the folder of the `waybill up` whose database it is, if it is one's
}

func targetFlags(cmd *cobra.Command, database bool) *target {
	t := &target{}
	f := cmd.Flags()
	f.StringVar(&t.dir, "dir", config.Default().Dir, "folder of a running waybill, whose addresses are used")
	t.dirAsked = func() bool { return f.Changed("dir") }
	f.StringSliceVar(&t.brokers, "brokers", nil, "broker addresses, HOST:PORT (env "+config.EnvBrokers+")")
	f.StringVar(&t.registry, "registry", "", "schema registry URL (env "+config.EnvRegistryURL+")")
	if database {
		f.StringVar(&t.database, "database", "", "Postgres connection string (env "+config.EnvDatabaseURL+")")
	}
	return t
}

// resolve fills in what the flags left open.
func (t *target) resolve() error {
	if err := t.cfg.FromEnvironment(); err != nil {
		return usageError{err}
	}
	if len(t.brokers) > 0 {
		t.cfg.Brokers = t.brokers
	}
	if t.registry != "" {
		t.cfg.RegistryURL = t.registry
	}
	if t.database != "" {
		t.cfg.DatabaseURL = t.database
	}
	def := config.Default()
	running := app.ReadAddresses(t.dir)
	if t.dirAsked() && running == (app.Addresses{}) {
		return fmt.Errorf("no waybill runs in %s, or it is somebody else's: start one there, or leave --dir out", t.dir)
	}
	if t.hasSecrets() && !t.dirAsked() && !running.OnThisMachine() {
		running = app.Addresses{} // secrets go to this machine, or to addresses that somebody named
	}
	if len(t.cfg.Brokers) == 0 && running.Kafka == "" && t.cfg.KafkaSASL != nil {
		return usagef("credentials for Kafka are configured, and no brokers to send them to: name those with --brokers, or a running waybill with --dir")
	}
	t.guessed = t.cfg.RegistryURL == "" && running.Registry == ""
	if len(t.cfg.Brokers) == 0 {
		t.cfg.Brokers = []string{or(running.Kafka, def.KafkaListen)}
	}
	t.cfg.RegistryURL = or(t.cfg.RegistryURL, or(running.Registry, "http://"+def.RegistryListen))
	if t.cfg.DatabaseURL == "" {
		// Asked of the wrong mode, an outbox without a table looks empty, and one
		// that is polled looks as if nobody read it.
		t.cfg.DatabaseURL, t.cfg.Outbox.Relay = running.Database, or(t.cfg.Outbox.Relay, running.Relay)
		if running.Database != "" {
			t.upDir = t.dir
		}
	}
	return nil
}

func (t *target) hasSecrets() bool {
	return t.cfg.KafkaSASL != nil || t.cfg.RegistrySecret != "" || t.cfg.RegistryBearer != ""
}

func or(v, def string) string {
	if v != "" {
		return v
	}
	return def
}

func (t *target) brokerConfig() broker.Config {
	return broker.Config{Brokers: t.cfg.Brokers, TLS: t.cfg.KafkaTLS, SASL: t.cfg.KafkaSASL, Logger: quiet()}
}

// client is a client of a broker that answers.
func (t *target) client(ctx context.Context, opts ...kgo.Opt) (*kgo.Client, error) {
	cl, err := t.brokerConfig().Client(opts...)
	if err != nil {
		return nil, err
	}
	ping, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := cl.Ping(ping); err != nil {
		cl.Close()
		return nil, fmt.Errorf("no broker answers at %v (start one with `waybill up`, or name another with --brokers): %w", t.cfg.Brokers, err)
	}
	return cl, nil
}

func (t *target) registryClient() (*registry.Client, error) {
	if t.guessed && (t.cfg.RegistrySecret != "" || t.cfg.RegistryBearer != "") {
		return nil, usagef("credentials for a registry are configured, and no registry to send them to: name it with --registry, or a running waybill with --dir")
	}
	return registry.New(t.cfg.RegistryURL, registry.Config{
		Username: t.cfg.RegistryUser, Password: t.cfg.RegistrySecret, BearerToken: t.cfg.RegistryBearer,
	})
}

// registryHint adds how credentials are given, or which flag names another
// registry.
func registryHint(err error) error {
	if errors.Is(err, registry.ErrDenied) {
		return fmt.Errorf("%w (give a name and a password as --registry http://NAME:PASSWORD@HOST:PORT, or them or a bearer token under registry in the configuration file that %s names)", err, config.EnvFile)
	}
	if errors.Is(err, registry.ErrUnavailable) {
		return fmt.Errorf("%w (start one with `waybill up`, or name another with --registry)", err)
	}
	return err
}

var errNoDatabase = errors.New("which database? start `waybill up` in this folder, give its --dir, or set --database or " + config.EnvDatabaseURL)

// upHint is how the database is started, where it is that of a waybill in a
// folder.
func (t *target) upHint() string {
	if t.upDir == "" {
		return ""
	}
	return " with `" + upCommand(t.upDir) + "`"
}

// upCommand starts the waybill of a folder.
func upCommand(dir string) string {
	if dir == config.Default().Dir {
		return "waybill up"
	}
	return "waybill up --dir " + dir
}

func (t *target) pool(ctx context.Context) (*pgxpool.Pool, error) {
	if t.cfg.DatabaseURL == "" {
		return nil, errNoDatabase
	}
	db, err := pg.Open(ctx, t.cfg.DatabaseURL, pg.Config{ApplicationName: "waybill cli", MaxConns: 2})
	var away *pgconn.ConnectError
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused): // it answers
		return nil, fmt.Errorf("%w (check user, password and name, or name another with --database or %s)", err, config.EnvDatabaseURL)
	case errors.As(err, &away):
		return nil, fmt.Errorf("%w (start it%s, or name another with --database or %s)", err, t.upHint(), config.EnvDatabaseURL)
	}
	return db, err
}
