package cli

import (
	"errors"
	"fmt"
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
			say(fmt.Sprintf("load for %s; watch it with waybill lag --watch %s --brokers %s", cfg.Burst+cfg.After, group, strings.Join(brokers, ",")))
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
