package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/alert"
	"github.com/waybillhq/waybill/bench/consume"
	"github.com/waybillhq/waybill/internal/app"
)

func newBenchLoad() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "load",
		Short: "A load that outruns a group: lag, an alert, more workers, and back",
		Long: `Publishes more than the first workers of a group can handle, each of which waits
for somebody for --handler before its transaction. The lag grows, an alert fires
by the rule of --alert, workers become more as far as the lag asks for, the lag
drains, the alert is over, and in the calm after --burst workers become fewer.
With --by-hand nobody looks at the lag: --at so long there are --workers of them,
as of somebody who read waybill scale.

Lag, its age and workers are drawn, and with --svg written as a picture. Rule and
steps are of seconds here that are of minutes elsewhere. Effects are counted in
the database: lost, reordered within their key, or there twice.

Without settings everything runs in a temporary folder. Engines that are named
are used instead, as by waybill bench relay.`,
		Args: cobra.NoArgs,
	}
	var cfg consume.LoadConfig
	asJSON := jsonFlag(cmd)
	f := cmd.Flags()
	f.IntVar(&cfg.Produce, "produce", 240, "events published a second at first")
	f.IntVar(&cfg.Calm, "calm", 40, "events published a second afterwards")
	f.DurationVar(&cfg.Burst, "burst", 40*time.Second, "how long at first")
	f.DurationVar(&cfg.After, "after", 35*time.Second, "how long afterwards")
	f.DurationVar(&cfg.Handler, "handler", 50*time.Millisecond, "what an event waits for somebody")
	f.IntVar(&cfg.Workers, "from", 4, "workers at first, and at least")
	f.IntVar(&cfg.Max, "workers", 24, "workers at most; with --by-hand, workers from --at on")
	f.BoolVar(&cfg.ByHand, "by-hand", false, "set the workers at --at, by no lag")
	f.DurationVar(&cfg.At, "at", 20*time.Second, "when, with --by-hand")
	rule := f.String("alert", "time lag > 2s for 2s and not draining clear for 3s", "rule of the alert, see docs/OPERATIONS.md")
	svg := f.String("svg", "", "write the curve to this file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.Changed("at") && !cfg.ByHand {
			return usagef("--at goes with --by-hand")
		}
		var err error
		if cfg.Rule, err = alert.Parse(*rule); err != nil {
			return usagef("--alert: %v", err)
		}
		cfg.Rule.Name, cfg.Rule.Severity, cfg.Reading = "behind", "warning", app.Reading
		if err := consume.CheckLoad(cfg); err != nil {
			return usageError{err}
		}
		if cfg.Engines, err = benchEngines(); err != nil {
			return err
		}
		say, done := progress(cmd.ErrOrStderr())
		cfg.Progress = say
		cfg.Ready = func(brokers []string, group string) {
			say(fmt.Sprintf("%s; watch it with waybill lag --watch %s --brokers %s", cfg.Burst+cfg.After, group, strings.Join(brokers, ",")))
		}
		res, err := consume.RunLoad(cmd.Context(), cfg)
		done()
		if err != nil {
			return err
		}
		if *asJSON {
			err = printJSON(cmd.OutOrStdout(), res)
		} else {
			err = printLoad(cmd.OutOrStdout(), res)
		}
		if *svg != "" {
			err = errors.Join(err, os.WriteFile(*svg, []byte(drawLoad(res)), 0o644)) //nolint:gosec // a picture for everybody
		}
		return errors.Join(err, sound(res.Lost, res.Reordered+res.Duplicates))
	}
	return cmd
}

// loadWidth is the columns of the curves.
const loadWidth = 75

func printLoad(out io.Writer, r consume.LoadResult) error {
	var events, seconds, workers []float64
	for _, s := range r.Samples {
		events = append(events, drawn(s.Lag))
		age := 0.0
		if s.Seconds != nil {
			age = *s.Seconds
		}
		seconds, workers = append(seconds, age), append(workers, float64(s.Workers))
	}
	width := min(loadWidth, len(r.Samples))
	for _, p := range []string{
		plot(events, width, 6, "behind"), plot(seconds, width, 4, "s behind"), plot(workers, width, 4, "workers"),
		fmt.Sprintf("%15s└%s %.0f s\n%15s %s\n\n", "", axis(width), lastAt(r), "alert", alertLine(r, width)),
	} {
		if _, err := fmt.Fprint(out, p); err != nil {
			return err
		}
	}
	rows := [][]string{
		{"load", fmt.Sprintf("%d events", r.Events), fmt.Sprintf("%d/s for %.0f s, then %d/s; each waits %.0f ms", r.Produce, r.Burst, r.Calm, r.Handler)},
		{"lag", fmt.Sprintf("%d events at most", r.MaxLag), fmt.Sprintf("%.1f s behind at most, drained %s", r.MaxAge, atText(r.Drained))},
		{"alert", r.Rule, fmt.Sprintf("fired %s, over %s", atText(r.Fired), atText(r.Over))},
		{"workers", fmt.Sprintf("%d, %d at most, %d at the end", r.Least, r.Most, r.Last), byText(r)},
	}
	for _, m := range r.Marks {
		if m.Workers > 0 {
			rows = append(rows, []string{"", fmt.Sprintf("%d at %.1f s", m.Workers, m.At), m.Text})
		}
	}
	return table(out, append(rows,
		[]string{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("reordered %d  duplicates %d", r.Reordered, r.Duplicates)},
		[]string{"took", fmt.Sprintf("%.0f s", r.Took), fmt.Sprintf("%d cores", r.Cores)},
	))
}

func byText(r consume.LoadResult) string {
	if r.ByHand {
		return "set by hand"
	}
	return "by the lag"
}

// drawn shows what is unknown as nothing.
func drawn(n *int64) float64 {
	if n == nil {
		return 0
	}
	return float64(*n)
}

func lastAt(r consume.LoadResult) float64 { return r.Samples[len(r.Samples)-1].At }

func atText(at *float64) string {
	if at == nil {
		return "never"
	}
	return fmt.Sprintf("at %.1f s", *at)
}

// alertLine marks the columns in which the alert fires.
func alertLine(r consume.LoadResult, width int) string {
	line := make([]rune, width)
	for i := range line {
		at, fires := float64(i)/float64(width)*lastAt(r), '·'
		if r.Fired != nil && at >= *r.Fired && (r.Over == nil || at < *r.Over) {
			fires = '!'
		}
		line[i] = fires
	}
	return string(line)
}
