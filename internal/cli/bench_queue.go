package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/queue"
	"github.com/waybillhq/waybill/internal/config"
)

func newBenchQueue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Send, receive and acknowledge, beside a bare table",
		Long: `Fills a queue and empties it again, in batches over several connections.
limit_events_per_s is a bare table of an id and a body in the same Postgres,
emptied by one statement that locks and deletes (SKIP LOCKED), with no lease, no
receipt and no order of priorities. last_tenth_ratio is the rate at which the
last tenth came, to that of the first. With --held a transaction elsewhere stays
open all the time, so that vacuum can remove nothing.

Without settings Postgres runs in a temporary folder; ` + config.EnvDatabaseURL + ` names
one to use instead, in a database of the measurement's own.`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cfg := queue.Config{}
	f := cmd.Flags()
	f.IntVar(&cfg.Messages, "messages", 200_000, "messages")
	f.IntVar(&cfg.Batch, "batch", 100, "messages of one send, receive and ack")
	f.IntVar(&cfg.Workers, "workers", 4, "connections at a time")
	f.IntVar(&cfg.Body, "body", 200, "bytes of a body")
	f.BoolVar(&cfg.Held, "held", false, "keep a transaction open elsewhere")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cfg.Messages < 100 || cfg.Messages > 50_000_000:
			return usagef("--messages %d: want 100 to 50000000", cfg.Messages)
		case cfg.Batch < 1 || cfg.Batch > 1000:
			return usagef("--batch %d: want 1 to 1000", cfg.Batch)
		case cfg.Workers < 1 || cfg.Workers > 64:
			return usagef("--workers %d: want 1 to 64", cfg.Workers)
		case cfg.Body < 0 || cfg.Body > 10_000:
			return usagef("--body %d: want 0 to 10000 bytes", cfg.Body)
		}
		return measurement[queue.Result]{
			run: func(cmd *cobra.Command, engines engine.Config, say func(string)) (queue.Result, error) {
				cfg.Engines, cfg.Progress = engines, say
				return queue.Run(cmd.Context(), cfg)
			},
			print: func(out io.Writer, r queue.Result) error { return table(out, benchQueueRows(r)) },
			sound: func(r queue.Result) error { return sound(int64(r.Lost), 0) },
		}.do(cmd, *asJSON)
	}
	return cmd
}

func benchQueueRows(r queue.Result) [][]string {
	return [][]string{
		{"sent", fmt.Sprintf("%.0f messages/s", r.Sent), fmt.Sprintf("bare table %.0f/s", r.SentLimit)},
		{"received and acknowledged", fmt.Sprintf("%.0f messages/s", r.PerSecond), fmt.Sprintf("%.2f of the bare table's %.0f/s", r.Ratio, r.Limit)},
		{"one receive and ack", fmt.Sprintf("p50 %.1f ms  p99 %.1f ms", r.P50, r.P99), fmt.Sprintf("of %d messages", r.Batch)},
		{"last tenth", fmt.Sprintf("%.2f of the first one's rate", r.SlowdownEnd), fmt.Sprintf("table %.0f MB at the end", r.TableMB)},
		{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("duplicates %d", r.Duplicates)},
	}
}
