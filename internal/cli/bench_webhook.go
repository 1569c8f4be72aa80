package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/webhook"
	"github.com/waybillhq/waybill/internal/config"
)

func newBenchWebhook() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Send a backlog to tenants' endpoints, and a steady load beside one that stalls",
		Long: `Hands small events over to tenants with an endpoint each, and measures how many a
second leave, each signed, called out over HTTP and noted. Then events go to the
same tenants at a steady rate, and as many to one tenant more, whose endpoint
answers in some rounds and never does in the others, in turn: what it costs the
rest is the ratio of their 99th percentiles, from handing over to receipt.
Receivers, sender and Postgres share the machine.

` + config.EnvDatabaseURL + ` names a Postgres to use instead of one started here.`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cfg := webhook.Config{}
	f := cmd.Flags()
	f.IntVar(&cfg.Events, "events", 20_000, "events of the backlog")
	f.IntVar(&cfg.Tenants, "tenants", 50, "with an endpoint each")
	f.IntVar(&cfg.Rate, "rate", 500, "events a second to them, and as many to one more")
	f.DurationVar(&cfg.For, "for", 10*time.Second, "how long a round takes")
	f.IntVar(&cfg.Rounds, "rounds", 4, "rounds with a stalled endpoint, and as many without")
	f.DurationVar(&cfg.Timeout, "timeout", 2*time.Second, "of a call")
	f.IntVar(&cfg.Body, "body", 200, "bytes of padding in an event")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cfg.Events < 1 || cfg.Events > 1_000_000:
			return usagef("--events %d: want 1 to 1000000", cfg.Events)
		case cfg.Tenants < 1 || cfg.Tenants > 10_000:
			return usagef("--tenants %d: want 1 to 10000", cfg.Tenants)
		case cfg.Rate < 50 || cfg.Rate > 20_000:
			return usagef("--rate %d: want 50 to 20000 a second", cfg.Rate)
		case cfg.For < 100*time.Millisecond || cfg.For > 10*time.Minute:
			return usagef("--for %s: want 100ms to 10m", cfg.For)
		case cfg.Rounds < 1 || cfg.Rounds > 100:
			return usagef("--rounds %d: want 1 to 100", cfg.Rounds)
		case cfg.Timeout < 100*time.Millisecond || cfg.Timeout > time.Minute:
			return usagef("--timeout %s: want 100ms to 1m", cfg.Timeout)
		case cfg.Body < 0 || cfg.Body > 100_000:
			return usagef("--body %d: want 0 to 100000 bytes", cfg.Body)
		}
		return measurement[webhook.Result]{
			run: func(cmd *cobra.Command, engines engine.Config, say func(string)) (webhook.Result, error) {
				cfg.Engines, cfg.Progress = engines, say
				return webhook.Run(cmd.Context(), cfg)
			},
			print: func(out io.Writer, r webhook.Result) error { return table(out, benchWebhookRows(r)) },
			// What is sent twice is what a receiver was too slow with: no error.
			sound: func(r webhook.Result) error { return sound(r.Lost, 0) },
		}.do(cmd, *asJSON)
	}
	return cmd
}

func benchWebhookRows(r webhook.Result) [][]string {
	return [][]string{
		{"backlog", fmt.Sprintf("%.0f/s", r.PerS), fmt.Sprintf("%d events of %d tenants, from the start until all are noted; %.0f/s until all are received", r.Events, r.Tenants, r.SentPerS)},
		{"at a steady rate", fmt.Sprintf("p50 %.1f ms  p99 %.1f ms", r.P50, r.P99), fmt.Sprintf("%d/s, and as many to one more that answers; median of %d rounds", r.Rate, r.Rounds)},
		{"beside a stalled one", fmt.Sprintf("p50 %.1f ms  p99 %.1f ms", r.StallP50, r.StallP99), fmt.Sprintf("%.2f times the p99; %d calls never answered", r.Ratio, r.Stalled)},
		{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("duplicates %d, %d cores, Postgres %s", r.Twice, r.Cores, r.Postgres)},
	}
}
