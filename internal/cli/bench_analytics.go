package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/analytics"
	"github.com/waybillhq/waybill/bench/engine"
)

func newBenchAnalytics() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "analytics",
		Short: "Analytics: the log of events and the figures kept in Postgres, against COPY of the log's rows",
		Long: `Publishes what the product tells of orders, 17 events each from creation to
delivery, of 100 merchants and 2,000 orders at a time, and has the group keep
the log of events and all figures, each event once, by one worker. Then the
log's rows are copied by COPY, 1,000 a transaction, into a table with the same
primary key. What was kept is read back.

Everything runs in a temporary folder, but for a Postgres that is named.`,
		Args: cobra.NoArgs,
	}
	var cfg analytics.Config
	asJSON := jsonFlag(cmd)
	cmd.Flags().Int64Var(&cfg.Events, "events", 200_000, "events, about")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := analytics.Check(cfg); err != nil {
			return usagef("--events: %v", err)
		}
		return measurement[analytics.Result]{
			run: func(cmd *cobra.Command, engines engine.Config, say func(string)) (analytics.Result, error) {
				cfg.Engines, cfg.Progress = engines, say
				return analytics.Run(cmd.Context(), cfg)
			},
			print: func(out io.Writer, r analytics.Result) error { return table(out, analyticsRows(r)) },
			sound: func(r analytics.Result) error { return sound(r.Lost, r.Duplicates) },
		}.do(cmd, *asJSON)
	}
	return cmd
}

func analyticsRows(r analytics.Result) [][]string {
	return [][]string{
		{"events", fmt.Sprint(r.Events), fmt.Sprintf("of %d orders; Postgres %s, %d cores", r.Orders, r.Postgres, r.Cores)},
		{"log and figures, once", fmt.Sprintf("%.0f events/s", r.Kept), fmt.Sprintf("%.2f of COPY's %.0f rows/s", r.VsCopy, r.Copy)},
		{"CPU", figure(r.CPU, "%.1f s"), fmt.Sprintf("of this process; Postgres %s, %s for COPY", figure(r.PostgresCPU, "%.1f s"), figure(r.CopyCPU, "%.1f s"))},
		{"memory", figure(r.Peak, "%.0f MB"), "of this process, at most"},
		{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("duplicates %d", r.Duplicates)},
		{"took", fmt.Sprintf("%.0f s", r.Seconds), ""},
	}
}
