package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/relay"
	"github.com/waybillhq/waybill/internal/config"
	outboxrelay "github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/pg"
)

const benchRelayLong = `Drains a backlog from the outbox to the broker, times one event at a steady
rate, and writes as fast as can be while the relay runs. The relay is a process
of its own ("waybill run relay"), and so is the broker.

The backlog: ` + relay.Shape + `.
events_per_s counts from the moment the relay has its replication slot to its
last mark. limit_events_per_s is the same WAL read by pg_recvlogical, which
publishes nothing, once before and once after the relay. cpu_s and rss_peak_mb
are the relay's process while it drains, rss_mb the same with nothing to do.
p50_ms and p99_ms are from the return of an event's commit to the moment a
consumer of the topic holds it. sustained_events_per_s is what was published and
marked while four connections committed durably as fast as they could. Every
topic is read back: lost, reordered and duplicates are over all events.

Without settings everything runs in a temporary folder. Engines that are named
are used instead: ` + config.EnvDatabaseURL + ` (a role with CREATEDB and
REPLICATION; the work is done in a database of its own, which is dropped),
` + config.EnvBrokers + ` (topics of its own, which are deleted; the product's
topics are made if they are not there) and ` + config.EnvRegistryURL + ` (schemas
stay). Mode eos needs a Kafka or Redpanda.`

func newBenchRelay() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "From the outbox to the log, beside pg_recvlogical on the same WAL",
		Long:  benchRelayLong,
		Args:  cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cfg := relay.Config{}
	f := cmd.Flags()
	f.StringVar(&cfg.Mode, "mode", relay.WAL, "how the relay works: "+strings.Join(relay.Modes(), ", "))
	f.Int64Var(&cfg.Events, "events", 300_000, "events of the backlog")
	f.IntVar(&cfg.Rate, "rate", 1000, "events a second while the time of one is taken")
	f.DurationVar(&cfg.Latency, "latency", 10*time.Second, "length of that load; 0 leaves it out")
	f.DurationVar(&cfg.Sustain, "sustained", 8*time.Second, "length of writing as fast as can be; 0 leaves it out")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cfg.Events < 1 || cfg.Events > 20_000_000:
			return usagef("--events %d: want 1 to 20000000", cfg.Events)
		case cfg.Rate < 1 || cfg.Rate > 100_000:
			return usagef("--rate %d: want 1 to 100000 events a second", cfg.Rate)
		case cfg.Latency < 0 || cfg.Latency > time.Hour:
			return usagef("--latency %s: want 0s to 1h", cfg.Latency)
		case cfg.Sustain < 0 || cfg.Sustain > time.Hour:
			return usagef("--sustained %s: want 0s to 1h", cfg.Sustain)
		}
		return measurement[relay.Result]{
			run: func(cmd *cobra.Command, engines engine.Config, say func(string)) (relay.Result, error) {
				cfg.Engines, cfg.Progress = engines, say
				if err := relay.Check(cfg); err != nil {
					return relay.Result{}, usageError{err}
				}
				return relay.Run(cmd.Context(), cfg)
			},
			print: printRelay,
			sound: func(r relay.Result) error { return sound(r.Lost, r.Reordered) },
		}.do(cmd, *asJSON)
	}
	return cmd
}

// newBenchNoMarks is the relay that the measurement runs beside the ordinary
// one.
func newBenchNoMarks() *cobra.Command {
	cmd := &cobra.Command{Use: relay.NoMarksCommand, Hidden: true, Args: cobra.NoArgs, Short: "For bench relay alone: events look unpublished"}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		var cfg config.Config
		if err := cfg.FromEnvironment(); err != nil {
			return usageError{err}
		}
		log, err := newLogger(cmd.ErrOrStderr(), "warn")
		if err != nil {
			return err
		}
		db, err := pg.Open(ctx, cfg.DatabaseURL, pg.Config{})
		if err != nil {
			return err
		}
		defer db.Close()
		t := target{cfg: cfg}
		schemas, err := t.registryClient()
		if err != nil {
			return err
		}
		return outboxrelay.New(db, t.brokerConfig().Client, schemas, outboxrelay.Config{
			Mode: outboxrelay.Mode(cfg.Outbox.Relay), NoMarks: true, Logger: log,
		}).Run(ctx)
	}
	return cmd
}

func printRelay(out io.Writer, r relay.Result) error {
	if err := table(out, relayRows(r)); err != nil {
		return err
	}
	for _, n := range r.Notes {
		if _, err := fmt.Fprintln(out, "\n"+n); err != nil {
			return err
		}
	}
	return nil
}

func relayRows(r relay.Result) [][]string {
	rows := [][]string{
		{"backlog", fmt.Sprintf("%d events, mode %s", r.Events, r.Mode), "Postgres " + r.Postgres + fmt.Sprintf(", %d cores", r.Cores)},
		{
			"drained", fmt.Sprintf("%.0f events/s", r.PerSecond),
			fmt.Sprintf("%s of pg_recvlogical's %s", figure(r.Ratio, "%.2f"), figure(r.Limit, "%.0f events/s")),
		},
		{
			"without marks", figure(r.PerSecondNoMarks, "%.0f events/s"),
			fmt.Sprintf("%s of pg_recvlogical's %s", figure(r.RatioNoMarks, "%.2f"), figure(r.LimitNoMarks, "%.0f events/s")),
		},
		{"relay's CPU", figure(r.CPU, "%.2f s"), figure(r.PerCPUSecond, "%.0f events per CPU second")},
		{"relay's memory", figure(r.RSS, "%.1f MB idle"), figure(r.Peak, "%.1f MB at most while draining")},
	}
	if r.P50 != nil {
		rows = append(rows, []string{
			fmt.Sprintf("commit→consumer at %d/s", r.Rate), "mean " + figure(r.Mean, "%.2f ms"),
			"p50 " + figure(r.P50, "%.2f ms") + "  p99 " + figure(r.P99, "%.2f ms"),
		})
	}
	if r.Sustained != nil {
		rows = append(rows, []string{
			"sustained", figure(r.Sustained, "%.0f events/s published"),
			figure(r.SustainedWritten, "%.0f/s written") + ", backlog at the end " + number(r.SustainedBacklog),
		})
	}
	rows = append(rows, [][]string{
		{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("reordered %d  duplicates %d", r.Reordered, r.Duplicates)},
		{"took", fmt.Sprintf("%.0f s", r.Seconds), ""},
	}...)
	return rows
}

// figure is v in a format, or that it is not known.
func figure(v *float64, format string) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf(format, *v)
}
