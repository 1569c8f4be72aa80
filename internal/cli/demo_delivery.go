package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/demo/delivery"
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
	return &cobra.Command{
		Use:   "outage",
		Short: "Billing is killed under load and comes back; what waited, how long, and whether all is there",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return playDelivery(cmd, delivery.Outage) },
	}
}

// playDelivery plays on engines of its own: in anybody else's broker the
// product's groups may be at work.
func playDelivery(cmd *cobra.Command, play func(ctx context.Context, program string, out io.Writer) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := play(cmd.Context(), self, cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("the scenario went otherwise: %w", err)
	}
	return nil
}
