package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/internal/config"
)

func newUp() *cobra.Command {
	cfg := config.Default()
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start everything in one process",
		Long: `Starts Postgres, a Kafka-protocol broker and a schema registry in one folder,
and on them the relay, the consumers, the API and the pages. Data is kept
across restarts; Ctrl-C stops in order.

An engine that is configured is used instead of one started here:
` + config.EnvDatabaseURL + `, ` + config.EnvBrokers + `, ` + config.EnvRegistryURL + `.`,
		Args: cobra.NoArgs,
	}
	listenFlags(cmd, &cfg)
	f := cmd.Flags()
	f.StringVar(&cfg.Listen, "listen", cfg.Listen, "address of the API and pages")
	f.IntVar(&cfg.PostgresPort, "postgres-port", cfg.PostgresPort, "port of the managed Postgres on loopback, 0 for any free one")
	noSim := f.Bool("no-sim", false, "do not run the simulator")
	f.Float64Var(&cfg.Sim.Speed, "sim-speed", 10, "simulator: times as fast as real time, 1 to 600")
	f.Float64Var(&cfg.Sim.Rate, "sim-rate", 0.5, "simulator: orders a simulated minute on the mean of a day")
	f.IntVar(&cfg.Sim.Couriers, "sim-couriers", 30, "simulator: how many couriers ride")
	level := logFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, err := newLogger(cmd.ErrOrStderr(), *level)
		if err != nil {
			return err
		}
		if err := configure(&cfg, ""); err != nil {
			return err
		}
		cfg.Sim.On = !*noSim
		if cfg.Sim.On && cfg.Sim.Speed < 1 {
			return usageError{fmt.Errorf("--sim-speed %v: want 1 to 600, or --no-sim", cfg.Sim.Speed)}
		}
		spareProcessors()
		a, err := app.Up(cmd.Context(), cfg, log)
		if err != nil {
			return err
		}
		return serveUp(cmd.Context(), cfg, a, cmd.OutOrStdout())
	}
	return cmd
}

func listenFlags(cmd *cobra.Command, cfg *config.Config) {
	f := cmd.Flags()
	f.StringVar(&cfg.Dir, "dir", cfg.Dir, "folder for the data")
	f.StringVar(&cfg.KafkaListen, "kafka-listen", cfg.KafkaListen, "address of the broker")
	f.StringVar(&cfg.KafkaAdvertise, "kafka-advertise", "", "HOST:PORT that clients are told to use for the broker")
	f.StringVar(&cfg.RegistryListen, "registry-listen", cfg.RegistryListen, "address of the schema registry")
}

// configure adds file and environment to what the flags said and checks it.
func configure(cfg *config.Config, metrics string) error {
	if err := cfg.FromEnvironment(); err != nil {
		return usageError{err}
	}
	cfg.MetricsListen = or(metrics, cfg.MetricsListen)
	if err := cfg.Check(); err != nil {
		return usageError{err}
	}
	return nil
}

func serveUp(ctx context.Context, cfg config.Config, a *app.App, out io.Writer) error {
	if err := a.WriteAddresses(); err != nil {
		return stopAfter(ctx, a, err)
	}
	banner(out, cfg, a)
	line := startStatusLine(ctx, a, out)
	err := a.Wait(ctx)
	line()
	if err == nil {
		_, _ = fmt.Fprintln(out, "stopping… (a second Ctrl-C ends it at once, and may leave its Postgres running for the next start)")
	}
	stopping := err == nil
	if err = stopAfter(ctx, a, err); err == nil && stopping {
		_, _ = fmt.Fprintln(out, "stopped")
	}
	return err
}

// stopAfter stops a; the error that led to it, if any, comes first.
func stopAfter(ctx context.Context, a *app.App, err error) error {
	stopped := a.Stop(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	return stopped
}

func banner(out io.Writer, cfg config.Config, a *app.App) {
	at := a.Addresses()
	_, _ = fmt.Fprintf(out, "\nWaybill is up after %s.\n\n", a.Uptime().Round(time.Millisecond))
	_ = table(out, [][]string{
		{"  desk", at.HTTP + "/#key=" + at.DemoKey},
		{"  API", at.HTTP + "/docs"},
		{"  broker", brokerText(cfg, at)},
		{"  registry", at.Registry},
		{"  Postgres", databaseText(cfg, at)},
		{"  demo key", at.DemoKey},
	})
	_, _ = fmt.Fprintln(out)
}

func brokerText(cfg config.Config, at app.Addresses) string {
	if len(cfg.Brokers) > 0 {
		return strings.Join(cfg.Brokers, ",") + "  (yours)"
	}
	return at.Kafka + "  (single node, no replication)"
}

// databaseText is the whole connection string of our own server, whose
// password is this folder's. Of another it says only that it is used.
func databaseText(cfg config.Config, at app.Addresses) string {
	if cfg.DatabaseURL != "" {
		return "yours, named by " + config.EnvDatabaseURL + " or the configuration file"
	}
	return at.Database
}
