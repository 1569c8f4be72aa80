package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/push"
	"github.com/waybillhq/waybill/internal/config"
)

func newBenchPush() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Hold streams open, and send to one of them and to all",
		Long: `Opens streams (Server-Sent Events over plain HTTP/1) to a server in a process of
its own, each with a channel of its own, and measures what an idle one costs
there, in heap and stacks after a collection and in resident memory. Then events
go to one connection each at a steady rate, from the producer's call to the
reader's, and at last some go to everybody, one after the other, until the last
has read each. Readers, server and broker share the machine.

Each process needs a file descriptor for each connection: see ulimit -n.
` + config.EnvBrokers + ` names a broker to use instead of one started here.`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cfg := push.Config{}
	f := cmd.Flags()
	f.IntVar(&cfg.Connections, "connections", 10_000, "streams open at once")
	f.IntVar(&cfg.Rate, "rate", 1000, "events a second, each for one connection")
	f.DurationVar(&cfg.For, "for", 5*time.Second, "how long they go on")
	f.IntVar(&cfg.Broadcasts, "broadcasts", 5, "events for everybody")
	f.IntVar(&cfg.Body, "body", 200, "bytes of padding in an event")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cfg.Connections < 1 || cfg.Connections > 100_000:
			return usagef("--connections %d: want 1 to 100000", cfg.Connections)
		case cfg.Rate < 1 || cfg.Rate > 100_000:
			return usagef("--rate %d: want 1 to 100000 a second", cfg.Rate)
		case cfg.For < 0 || cfg.For > 10*time.Minute:
			return usagef("--for %s: want 0s to 10m", cfg.For)
		case cfg.Broadcasts < 0 || cfg.Broadcasts > 1000:
			return usagef("--broadcasts %d: want 0 to 1000", cfg.Broadcasts)
		case cfg.Body < 0 || cfg.Body > 10_000:
			return usagef("--body %d: want 0 to 10000 bytes", cfg.Body)
		}
		if err := enoughFiles(cfg.Connections); err != nil {
			return err
		}
		return measurement[push.Result]{
			run: func(cmd *cobra.Command, engines engine.Config, say func(string)) (push.Result, error) {
				cfg.Engines, cfg.Progress = engines, say
				return push.Run(cmd.Context(), cfg)
			},
			print: func(out io.Writer, r push.Result) error { return table(out, benchPushRows(r)) },
			sound: func(r push.Result) error { return sound(r.Lost, r.Duplicates) },
		}.do(cmd, *asJSON)
	}
	return cmd
}

func benchPushRows(r push.Result) [][]string {
	return [][]string{
		{"connections", fmt.Sprint(r.Connections), fmt.Sprintf("open after %.1f s", r.ConnectS)},
		{"an idle one", fmt.Sprintf("%.0f bytes", r.Bytes), fmt.Sprintf("%.0f of resident memory, %.2f goroutines", r.RSS, r.Goroutines)},
		{"to one", fmt.Sprintf("p50 %.2f ms  p99 %.2f ms", r.P50, r.P99), fmt.Sprintf("at %.0f events/s", r.Achieved)},
		{"to everybody", fmt.Sprintf("%.0f ms", r.Broadcast), fmt.Sprintf("%.0f deliveries/s", r.PerSecond)},
		{"server", fmt.Sprintf("%.2f s of CPU", r.CPU), fmt.Sprintf("%d cores", r.Cores)},
		{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("duplicates %d", r.Duplicates)},
	}
}

func newBenchPushServer() *cobra.Command {
	cmd := &cobra.Command{Use: push.ServeCommand, Hidden: true, Args: cobra.NoArgs, Short: "For bench push alone: the server that is measured"}
	cfg := push.ServeConfig{}
	f := cmd.Flags()
	f.StringVar(&cfg.Topic, "topic", "", "topic")
	f.IntVar(&cfg.Connections, "connections", 0, "channels")
	f.StringVar(&cfg.Ready, "ready", "", "file for its address")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		engines, err := benchEngines()
		if err != nil {
			return err
		}
		cfg.Client = engines.Broker.Client
		if cfg.Logger, err = newLogger(cmd.ErrOrStderr(), "warn"); err != nil {
			return err
		}
		return push.Serve(cmd.Context(), cfg)
	}
	return cmd
}
