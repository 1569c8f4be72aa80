package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/consume"
	"github.com/waybillhq/waybill/bench/engine"
)

func newBenchBuffer() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "buffer",
		Short: "A producer that outruns its consumer, which catches up: depth, memory, losses",
		Long: `Publishes at one rate while a group handles at a lower one, then takes the brake
off and waits until all is handled. The depth is drawn: events published and not
yet handled. Memory is this process', producer and consumer; the broker, which
keeps the log, is a process of its own. Every event is counted: lost, reordered
within its key, or handled twice.

Without settings everything runs in a temporary folder. Engines that are named
are used instead, as by waybill bench relay.`,
		Args: cobra.NoArgs,
	}
	var cfg consume.BufferConfig
	asJSON := jsonFlag(cmd)
	cmd.Flags().IntVar(&cfg.Produce, "produce", 10_000, "events published a second")
	cmd.Flags().IntVar(&cfg.Drain, "drain", 2_000, "events handled a second meanwhile")
	seconds := cmd.Flags().Int("seconds", 30, "how long")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg.For = time.Duration(*seconds) * time.Second
		if err := consume.CheckBuffer(cfg); err != nil {
			return usageError{err}
		}
		return measurement[consume.BufferResult]{
			run: func(cmd *cobra.Command, engines engine.Config, say func(string)) (consume.BufferResult, error) {
				cfg.Engines, cfg.Progress = engines, say
				return consume.RunBuffer(cmd.Context(), cfg)
			},
			print: printBuffer,
			sound: func(r consume.BufferResult) error { return sound(r.Lost, r.Reordered) },
		}.do(cmd, *asJSON)
	}
	return cmd
}

func printBuffer(out io.Writer, r consume.BufferResult) error {
	depths := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		depths[i] = float64(s.Depth)
	}
	last := r.Samples[len(r.Samples)-1].Seconds
	if _, err := fmt.Fprintf(out, "%s%15s└%s %.0f s\n\n", plot(depths, 60, 10, "waiting"), "", axis(min(60, len(depths))), last); err != nil {
		return err
	}
	return table(out, [][]string{
		{"published", fmt.Sprintf("%d events", r.Events), fmt.Sprintf("%.0f/s", r.Produced)},
		{"handled meanwhile", fmt.Sprintf("%.0f/s", r.Drained), fmt.Sprintf("%d waiting at most", r.MaxDepth)},
		{"caught up", fmt.Sprintf("in %.1f s", r.CatchUp), fmt.Sprintf("%.0f/s", r.CatchUpAt)},
		{"memory", figure(r.RSSFirst, "%.0f MB at the start"), figure(r.RSSPeak, "%.0f MB at most") + ", producer and consumer"},
		{"broker", figure(r.Broker, "%.0f MB at most"), "it keeps the log"},
		{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("reordered %d  duplicates %d", r.Reordered, r.Duplicates)},
		{"took", fmt.Sprintf("%.0f s", r.Seconds), ""},
	})
}

func axis(width int) string {
	line := make([]rune, width)
	for i := range line {
		line[i] = '─'
	}
	return string(line)
}
