// Command peers carries the same events from a Postgres table to the same
// broker with Waybill's relay and with others, one after the other, and prints
// what each took.
//
//	make bench-peers
//
// It is a module of its own: what it compares with never enters the product.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signalled()
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// signalled ends with the first signal; a second one ends us at once.
func signalled() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// command measures, or plays one of the peers for a measurement.
func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == forwardCommand {
		return forward(ctx, args[1])
	}
	cfg := config{Progress: func(step string) { fmt.Fprintln(os.Stderr, step+"…") }}
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.StringVar(&cfg.Program, "waybill", "bin/waybill", "Waybill's own binary")
	f.Int64Var(&cfg.Events, "events", 20_000, "events of the backlog")
	f.IntVar(&cfg.Rate, "rate", 200, "events a second while the time of one is taken")
	f.DurationVar(&cfg.Latency, "latency", 5*time.Second, "length of that load")
	asJSON := f.Bool("json", false, "print JSON, for machines")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if cfg.Events < 1 || cfg.Rate < 1 || cfg.Latency <= 0 || f.NArg() > 0 {
		return errors.New("--events, --rate and --latency must be above nothing; see --help")
	}
	res, err := run(ctx, cfg)
	if err != nil {
		return err
	}
	if *asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(res)
	}
	return printTable(out, res)
}
