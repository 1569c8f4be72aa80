package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/fair"
)

func newBenchFair() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fair",
		Short: "What one merchant's flood of orders costs another",
		Long: `Posts a calm merchant's orders at a steady rate and waits for each on its stream,
first with nobody else there, then while another merchant sends orders over many
connections as fast as they are taken. ratio is the calm merchant's p99 beside
the flood to its p99 without. A Waybill of its own runs in a temporary folder.`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cfg := fair.Config{}
	f := cmd.Flags()
	f.IntVar(&cfg.Rate, "rate", 50, "orders a second of the calm merchant")
	seconds := f.Int("seconds", 45, "length of either half")
	f.IntVar(&cfg.Orders, "flood", 50_000, "orders of the flood at most")
	f.IntVar(&cfg.Connections, "connections", 64, "orders the flood sends at the same time")
	f.BoolVar(&cfg.Rude, "rude", false, "the flood sends again at once when it is told to wait")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cfg.Rate < 1 || cfg.Rate > 10_000:
			return usagef("--rate %d: want 1 to 10000 orders a second", cfg.Rate)
		case *seconds < 1 || *seconds > 3600:
			return usagef("--seconds %d: want 1 to 3600", *seconds)
		case cfg.Orders < 1 || cfg.Orders > 10_000_000:
			return usagef("--flood %d: want 1 to 10000000 orders", cfg.Orders)
		case cfg.Connections < 1 || cfg.Connections > 10_000:
			return usagef("--connections %d: want 1 to 10000", cfg.Connections)
		}
		cfg.Duration = time.Duration(*seconds) * time.Second
		return measurement[fair.Result]{
			run: func(cmd *cobra.Command, engines engine.Config, say func(string)) (fair.Result, error) {
				cfg.Program, cfg.Progress = engines.Program, say
				return fair.Run(cmd.Context(), cfg)
			},
			print: func(out io.Writer, r fair.Result) error { return table(out, benchFairRows(r)) },
			sound: fairSound,
		}.do(cmd, *asJSON)
	}
	return cmd
}

// fairSound makes an error of a calm merchant's order that was refused, or not
// seen to its end.
func fairSound(r fair.Result) error {
	if r.Refused > 0 {
		return fmt.Errorf("%d of the calm merchant's orders were refused, the first: %s", r.Refused, r.Failure)
	}
	if r.Unfinished > 0 {
		return fmt.Errorf("%d of the calm merchant's orders were not seen to their end", r.Unfinished)
	}
	return sound(int64(r.Lost), int64(r.Reordered))
}

func benchFairRows(r fair.Result) [][]string {
	of := func(p50, p99 *float64) string {
		if p50 == nil || p99 == nil {
			return "nothing was seen"
		}
		return fmt.Sprintf("p50 %.2f ms  p99 %.2f ms", *p50, *p99)
	}
	ratio := "unknown"
	if r.Ratio != nil {
		ratio = fmt.Sprintf("%.2f", *r.Ratio)
	}
	answers := "none"
	if r.IdleAnswer != nil && r.FloodAnswer != nil {
		answers = fmt.Sprintf("p99 %.2f ms alone, %.2f ms beside the flood", *r.IdleAnswer, *r.FloodAnswer)
	}
	return [][]string{
		{"alone", of(r.IdleP50, r.IdleP99)},
		{"beside the flood", of(r.FloodedP50, r.FloodedP99)},
		{"ratio of p99", ratio},
		{"answers", answers},
		{"the flood", fmt.Sprintf("%d orders in %.0f s, %.0f/s, %d requests refused, %d failed", r.FloodOrders, r.FloodSeconds, r.FloodRate, r.FloodRefused, r.FloodFailed)},
	}
}
