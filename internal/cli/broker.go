package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/internal/config"
)

func newBroker() *cobra.Command {
	cfg := config.Default()
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Start broker and schema registry alone, for messages of your own",
		Long: `Starts a Kafka-protocol broker and a Confluent-compatible schema registry in
one folder. It is one node without replication: for one machine.`,
		Args: cobra.NoArgs,
	}
	listenFlags(cmd, &cfg)
	level, metrics := logFlag(cmd), metricsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, err := newLogger(cmd.ErrOrStderr(), *level)
		if err != nil {
			return err
		}
		// Of file and environment only this: engines that they name are others'.
		said := config.Default()
		if err := configure(&said, *metrics); err != nil {
			return err
		}
		cfg.MetricsListen = said.MetricsListen
		if said.RegistryURL == "" { // then the credentials are this registry's
			cfg.RegistryUser, cfg.RegistrySecret, cfg.RegistryBearer = said.RegistryUser, said.RegistrySecret, said.RegistryBearer
		}
		if err := cfg.Check(); err != nil {
			return usageError{err}
		}
		spareProcessors()
		a, err := app.Broker(cmd.Context(), cfg, log)
		if err != nil {
			return err
		}
		if err := a.WriteAddresses(); err != nil {
			return stopAfter(cmd.Context(), a, err)
		}
		at := a.Addresses()
		out := cmd.OutOrStdout()
		_, _ = fmt.Fprintf(out, "\nBroker and registry are up after %s.\n\n", a.Uptime().Round(time.Millisecond))
		_ = table(out, [][]string{
			{"  broker", at.Kafka + "  (single node, no replication)"},
			{"  registry", at.Registry},
			{"  metrics", metricsText(a)},
		})
		_, _ = fmt.Fprintln(out)
		return stopAfter(cmd.Context(), a, a.Wait(cmd.Context()))
	}
	return cmd
}
