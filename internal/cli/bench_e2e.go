package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/e2e"
)

func newBenchE2E() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "e2e",
		Short: "From the click that creates an order to its confirmation on an open page",
		Long: `Posts orders over HTTP at a steady rate and follows them on the merchant's
stream and on customers' tracking streams. Without --url it starts a Waybill of
its own in a temporary folder and stops it afterwards.`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cfg := e2e.Config{}
	f := cmd.Flags()
	f.IntVar(&cfg.Rate, "rate", 100, "orders a second")
	seconds := f.Int("seconds", 10, "length of the load that is measured")
	f.DurationVar(&cfg.Warmup, "warmup", 2*time.Second, "load before it, whose waits are not counted: connections open, statements are prepared")
	f.IntVar(&cfg.Customers, "customers", 20, "tracking pages open at once")
	f.StringVar(&cfg.URL, "url", "", "API of a running Waybill, http://HOST:PORT")
	f.StringVar(&cfg.Key, "key", "", "its API key, with --url")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cfg.Rate < 1 || cfg.Rate > 100_000:
			return usagef("--rate %d: want 1 to 100000 orders a second", cfg.Rate)
		case *seconds < 1 || *seconds > 3600:
			return usagef("--seconds %d: want 1 to 3600", *seconds)
		case cfg.Warmup < 0 || cfg.Warmup > time.Hour:
			return usagef("--warmup %s: want 0s to 1h", cfg.Warmup)
		case cfg.Customers < 0 || cfg.Customers > 1000:
			return usagef("--customers %d: want 0 to 1000", cfg.Customers)
		case (cfg.URL == "") != (cfg.Key == ""):
			return usagef("--url and --key go together")
		}
		cfg.Duration = time.Duration(*seconds) * time.Second
		res, err := benchE2E(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		if *asJSON {
			err = printJSON(cmd.OutOrStdout(), res)
		} else if err = table(cmd.OutOrStdout(), e2eRows(res)); err == nil && res.Failure != "" {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nfirst failure: %s\n", res.Failure)
		}
		return errors.Join(err, sound(int64(res.Lost), int64(res.Reordered)), whole(res))
	}
	return cmd
}

func benchE2E(ctx context.Context, cfg e2e.Config) (res e2e.Result, err error) {
	if cfg.URL != "" {
		return e2e.Run(ctx, cfg)
	}
	self, err := os.Executable()
	if err != nil {
		return res, err
	}
	p, err := e2e.Start(ctx, self)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	cfg.URL, cfg.Key = p.URL, p.Key
	before := p.Usage()
	res, err = e2e.Run(ctx, cfg)
	if after := p.Usage(); after.Known {
		res.CPU, res.RSS = after.CPU-before.CPU, after.RSS
	}
	return res, err
}

// whole makes an error of orders that were refused, or that nobody saw in time.
func whole(r e2e.Result) error {
	var errs []error
	if r.Failed > 0 {
		errs = append(errs, fmt.Errorf("%d requests failed, the first: %s", r.Failed, r.Failure))
	}
	if r.Unfinished > 0 {
		errs = append(errs, fmt.Errorf("%d orders were not seen to their end: their events are committed and wait to be published or shown; waybill outbox status tells why", r.Unfinished))
	}
	return errors.Join(errs...)
}

func e2eRows(r e2e.Result) [][]string {
	three := func(a, b, c string) []string { return []string{a, b, c} }
	msec := func(v *float64) string {
		if v == nil {
			return "none"
		}
		return fmt.Sprintf("%.2f ms", *v)
	}
	rows := [][]string{
		three("orders", fmt.Sprint(r.Orders), fmt.Sprintf("%.0f/s of %d/s asked, %d failed", r.OrdersPerSecond, r.Rate, r.Failed)),
		three("events", fmt.Sprint(r.Events), fmt.Sprintf("%.0f/s seen, %d orders unfinished", r.PerSecond, r.Unfinished)),
		three("create→seen", "mean "+msec(r.Mean), "p50 "+msec(r.P50)+"  p99 "+msec(r.P99)+"  max "+msec(r.Max)),
		three("create→answer", "", "p50 "+msec(r.AnswerP50)+"  p99 "+msec(r.AnswerP99)),
		three("change→tracking page", fmt.Sprint(r.Tracked), "p50 "+msec(r.TrackedP50)+"  p99 "+msec(r.TrackedP99)),
		three("lost", fmt.Sprint(r.Lost), fmt.Sprintf("reordered %d  duplicates %d", r.Reordered, r.Duplicates)),
	}
	if r.RSS > 0 {
		rows = append(rows, three("the process", fmt.Sprintf("%.1f s CPU", r.CPU), fmt.Sprintf("%.0f MB resident, without Postgres", r.RSS)))
	}
	return rows
}
