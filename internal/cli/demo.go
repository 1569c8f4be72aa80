package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/demo/evolution"
)

func newDemo() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Scenarios that play by themselves, with engines of their own",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDemoEvolution(), newDemoSaga(), newDemoOutage())
	return cmd
}

func newDemoEvolution() *cobra.Command {
	return &cobra.Command{
		Use:   "evolution",
		Short: "A contract changes while programs of both versions run; what would break one is refused",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			engines, err := benchEngines()
			if err != nil {
				return err
			}
			if err := evolution.Run(cmd.Context(), engines, cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("the scenario went otherwise: %w", err)
			}
			return nil
		},
	}
}
