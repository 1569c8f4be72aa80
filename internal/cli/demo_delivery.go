package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/internal/demo/delivery"
	"github.com/waybillhq/waybill/webhook/seal"
)

func newDemoSaga() *cobra.Command {
	return &cobra.Command{
		Use:   "saga",
		Short: "An order that gets its courier, and one that is taken back; their timelines and books",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return playDelivery(cmd, delivery.Saga) },
	}
}

func newDemoOutage() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "outage",
		Short: "Billing is killed under load and comes back; what waited, how long, and whether all is there",
		Args:  cobra.NoArgs,
	}
	var l delivery.Load
	cmd.Flags().IntVar(&l.Rate, "rate", 20, "orders a second, 1 to 50")
	cmd.Flags().DurationVar(&l.Away, "away", 10*time.Second, "how long billing is away, 1s to 30s")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if l.Rate < 1 || l.Rate > 50 {
			return usagef("--rate %d: want 1 to 50 orders a second", l.Rate)
		}
		if l.Away < time.Second || l.Away > 30*time.Second {
			return usagef("--away %s: want 1s to 30s: couriers are held for two minutes, and then let go", l.Away)
		}
		return playDelivery(cmd, func(ctx context.Context, p delivery.Product, out io.Writer) error {
			return delivery.Outage(ctx, p, l, out)
		})
	}
	return cmd
}

// playDelivery plays on engines of its own: in anybody else's broker the
// product's groups may be at work.
func playDelivery(cmd *cobra.Command, play func(context.Context, delivery.Product, io.Writer) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	key := make([]byte, seal.KeySize)
	_, _ = rand.Read(key) // never fails: the program ends when there is no randomness
	sealing := base64.StdEncoding.EncodeToString(key)
	p := delivery.Product{
		Program: self,
		Env:     []string{config.EnvMetrics + "=" + config.MetricsOff, config.EnvFile + "=", config.EnvWebhookKeys + "=" + sealing},
		Run: func(ctx context.Context, on *engine.Engines, roles ...string) (*app.App, error) {
			return app.Run(ctx, config.Config{
				Listen: "127.0.0.1:0", MetricsListen: config.MetricsOff,
				DatabaseURL: on.DSN, Brokers: on.Broker.Brokers, RegistryURL: on.RegistryURL,
				Webhooks: config.Webhooks{Keys: []string{sealing}},
			}, quiet(), roles...)
		},
	}
	if err := play(cmd.Context(), p, cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("the scenario went otherwise: %w", err)
	}
	return nil
}
