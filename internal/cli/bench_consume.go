package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/consume"
	"github.com/waybillhq/waybill/bench/engine"
)

func newBenchConsume() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "consume",
		Short: "Consumer groups: effects once against bare transactions and COPY, slow handlers, a failing key",
		Long: `Publishes events of 1,000 keys and has groups handle them: handlers of one INSERT
with each effect once, beside the same INSERT in a transaction of its own
without a broker; the same group holding gaps in the numbers of events;
handlers of sets, once, beside COPY of as many rows; handlers
that take 10 ms, at least once, and the same with one key that always fails.
Everything uses the same 8 connections. The broker is a process of its own; the
groups run in this one. The tables are read back: lost, reordered and duplicates
are over all effects that must happen once.

Without settings everything runs in a temporary folder. Engines that are named
are used instead, as by waybill bench relay.`,
		Args: cobra.NoArgs,
	}
	var cfg consume.Config
	asJSON := jsonFlag(cmd)
	cmd.Flags().Int64Var(&cfg.Events, "events", 100_000, "events each group handles")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := consume.Check(cfg); err != nil {
			return usagef("--events: %v", err)
		}
		return measurement[consume.Result]{
			run: func(cmd *cobra.Command, engines engine.Config, say func(string)) (consume.Result, error) {
				cfg.Engines, cfg.Progress = engines, say
				return consume.Run(cmd.Context(), cfg)
			},
			print: func(out io.Writer, r consume.Result) error { return table(out, consumeRows(r)) },
			sound: func(r consume.Result) error { return sound(r.Lost, r.Reordered+r.Duplicates) },
		}.do(cmd, *asJSON)
	}
	return cmd
}

func consumeRows(r consume.Result) [][]string {
	return [][]string{
		{"events", fmt.Sprint(r.Events), fmt.Sprintf("Postgres %s, %d cores", r.Postgres, r.Cores)},
		{"handlers, once", fmt.Sprintf("%.0f events/s", r.Plain), fmt.Sprintf("%.1f × a transaction an event, %.0f/s", r.PlainVsTx, r.Tx)},
		{"handlers, once, gaps held", fmt.Sprintf("%.0f events/s", r.Counted), fmt.Sprintf("%.2f of those that do not look at numbers", r.CountedVsPlain)},
		{"handlers of sets, once", fmt.Sprintf("%.0f events/s", r.Batch), fmt.Sprintf("%.1f × a transaction an event, %.2f of COPY's %.0f rows/s", r.BatchVsTx, r.BatchVsCopy, r.Copy)},
		{"handlers of 10 ms, at least once", fmt.Sprintf("%.0f events/s", r.Keyed), fmt.Sprintf("a key that fails costs the others %.1f %%", 100*r.Poisoned)},
		{"CPU", figure(r.CPU, "%.1f s"), "of this process, for the handlers, once"},
		{"memory", figure(r.Peak, "%.0f MB"), "of this process, at most"},
		{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("reordered %d  duplicates %d", r.Reordered, r.Duplicates)},
		{"took", fmt.Sprintf("%.0f s", r.Seconds), ""},
	}
}
