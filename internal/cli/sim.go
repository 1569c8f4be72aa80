package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/sim"
)

func newSim() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Play a day of deliveries in São Paulo against the public API",
		Long: `Merchants take orders, couriers ride through São Paulo's streets with them and
send where they are, customers tell the code at the door or do not open. More is
ordered at lunch and dinner, by the city's clock. All of it goes through the
public HTTP API, with the API keys given, and follows from the seed.

The API is that of the waybill up in --dir unless --url names another. Without
--key the merchant is the demo's. A courier is a key of a courier: without
--courier-key orders are made and nobody rides.

At --speed above 1 everything goes faster and couriers seem to fly: distances
stay what they are. With --rate max as many orders are made as the product
takes; it is asked again when it says that it will be able to.`,
		Args: cobra.NoArgs,
	}
	var o simOptions
	asJSON := jsonFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", config.Default().Dir, "folder of a running waybill, whose API and demo key are used")
	f.StringVar(&o.url, "url", "", "URL of the API")
	f.StringArrayVar(&o.keys.Merchants, "key", nil, "API key of a merchant; may be given several times")
	f.StringArrayVar(&o.keys.Couriers, "courier-key", nil, "API key of a courier; may be given several times")
	f.IntVar(&o.cfg.Merchants, "merchants", 0, "how many of the merchants take part (default all)")
	f.IntVar(&o.cfg.Couriers, "couriers", 0, "how many of the couriers take part (default all)")
	f.StringVar(&o.rate, "rate", "2", "orders a simulated minute on the mean of a day, or max")
	f.Float64Var(&o.cfg.Speed, "speed", 1, "times as fast as real time, 1 to 600")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "what everything that is decided follows from")
	f.DurationVar(&o.cfg.Duration, "duration", 0, "stop after so much real time (default never)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.resolve(); err != nil {
			return err
		}
		if err := o.check(cmd.Context()); err != nil {
			return err
		}
		o.cfg.Logger = quiet()
		stats, err := runSim(cmd.Context(), o.keys, o.cfg, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), stats)
		}
		return printSim(cmd.OutOrStdout(), stats)
	}
	return cmd
}

// simOptions is what the command was asked for.
type simOptions struct {
	dir, url, rate string
	keys           sim.Keys
	cfg            sim.Config
}

// resolve fills in what was not said. The demo's key goes to the demo alone.
func (o *simOptions) resolve() error {
	if o.rate == "max" {
		o.cfg.Max = true
	} else {
		n, err := strconv.ParseFloat(o.rate, 64)
		if err != nil || !(n > 0 && n <= 1e6) {
			return usagef("--rate %q: want orders a minute, such as 2.5, or max", o.rate)
		}
		o.cfg.Rate = n
	}
	if o.cfg.Speed < 1 || o.cfg.Speed > 600 {
		return usagef("--speed %g: want 1 to 600", o.cfg.Speed)
	}
	if o.cfg.Duration < 0 {
		return usagef("--duration %s: want a time that is not negative", o.cfg.Duration)
	}
	if o.url == "" {
		running := app.ReadAddresses(o.dir)
		if running.HTTP == "" {
			return fmt.Errorf("no waybill runs in %s: start one with `%s`, or name another's API with --url and --key", o.dir, upCommand(o.dir))
		}
		o.url = running.HTTP
		if len(o.keys.Merchants) == 0 && running.DemoKey != "" {
			o.keys.Merchants = []string{running.DemoKey}
		}
	}
	o.cfg.URL = o.url
	if len(o.keys.Merchants) == 0 {
		return usagef("which merchant? give --key, as `waybill tenant create NAME` prints it")
	}
	return o.count()
}

// count takes all the keys where nobody said how many.
func (o *simOptions) count() error {
	m, c := len(o.keys.Merchants), len(o.keys.Couriers)
	switch {
	case o.cfg.Merchants < 0 || o.cfg.Couriers < 0:
		return usagef("--merchants and --couriers are not negative")
	case o.cfg.Merchants > m:
		return usagef("--merchants %d: there are %d keys of merchants; give more with --key, as `waybill tenant create NAME` prints them", o.cfg.Merchants, m)
	case o.cfg.Couriers > c:
		return usagef("--couriers %d: there are %d keys of couriers; give more with --courier-key", o.cfg.Couriers, c)
	}
	if o.cfg.Merchants == 0 {
		o.cfg.Merchants = m
	}
	if o.cfg.Couriers == 0 {
		o.cfg.Couriers = c
	}
	if o.cfg.Couriers == 0 {
		o.cfg.Couriers = -1 // none, rather than some
	}
	return nil
}

// runSim plays until ctx ends or the time is over. On a terminal one line tells
// how it stands.
func runSim(ctx context.Context, enroll sim.Enroll, cfg sim.Config, errOut io.Writer) (sim.Stats, error) {
	f, ok := errOut.(*os.File)
	live := ok && term.IsTerminal(int(f.Fd()))
	if live {
		var before sim.Stats
		cfg.Progress = func(now sim.Stats) {
			_, _ = fmt.Fprint(errOut, "\r\x1b[K"+simText(before, now))
			before = now
		}
	}
	s, err := sim.New(enroll, cfg)
	if err != nil {
		return sim.Stats{}, usageError{err}
	}
	err = s.Run(ctx)
	if live {
		_, _ = fmt.Fprintln(errOut)
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return s.Stats(), err
}

func simText(before, now sim.Stats) string {
	took := max(now.Wall-before.Wall, 0.001)
	return fmt.Sprintf("%s   orders %d made, %d active, %d delivered, %d failed   couriers %d riding   %.0f pings/s   %s",
		now.To.Format("Mon 15:04"), now.Orders.Made, now.Orders.Active, now.Orders.Delivered, now.Orders.Failed,
		now.Couriers.Riding, float64(now.Pings.Sent-before.Pings.Sent)/took, plural(now.Errors, "error"))
}

func printSim(out io.Writer, s sim.Stats) error {
	perSecond := func(n int64) string { return fmt.Sprintf("%.1f a second", float64(n)/max(s.Wall, 0.001)) }
	return table(out, [][]string{
		{"simulated", s.From.Format("Mon 15:04") + " to " + s.To.Format("Mon 15:04"), fmt.Sprintf("in %s, seed %d", duration(time.Duration(s.Wall*float64(time.Second)).Round(time.Second)), s.Seed)},
		{"orders made", fmt.Sprint(s.Orders.Made), perSecond(s.Orders.Made)},
		{"  active", fmt.Sprint(s.Orders.Active)},
		{"  delivered", fmt.Sprint(s.Orders.Delivered)},
		{"  failed", fmt.Sprint(s.Orders.Failed), fmt.Sprintf("%d of them returned", s.Orders.Returned)},
		{"  cancelled", fmt.Sprint(s.Orders.Cancelled)},
		{"  not made", fmt.Sprint(s.Orders.Skipped)},
		{"offers accepted", fmt.Sprint(s.Offers.Accepted), fmt.Sprintf("%d declined", s.Offers.Declined)},
		{"ridden", fmt.Sprintf("%.1f km", s.Couriers.Km)},
		{"pings", fmt.Sprint(s.Pings.Sent), fmt.Sprintf("%d late, %d sent twice, %d dropped", s.Pings.Late, s.Pings.Again, s.Pings.Dropped)},
		{"requests", fmt.Sprint(s.Requests), perSecond(s.Requests)},
		{"  told to wait", fmt.Sprint(s.Throttled)},
		{"  failed", fmt.Sprint(s.Errors)},
	})
}
