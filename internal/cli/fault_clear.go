package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/logistica/faults"
)

func newFaultClear() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "clear (NAME | --all)",
		Short:   "Clear a fault, or all of them",
		Example: "  waybill fault clear billing-failure",
		Args:    cobra.MaximumNArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	all := cmd.Flags().Bool("all", false, "all that are set")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 1) == *all {
			return usagef("want the name of a fault, as `waybill fault ls` shows them, or --all")
		}
		return withFaults(cmd, t, func(ctx context.Context, f *faults.Flags) error {
			n, err := f.Clear(ctx, args...)
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(cmd.OutOrStdout(), map[string]int64{"cleared": n})
			case *all:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s cleared\n", plural(n, "fault"))
			case n == 0:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s was off\n", args[0])
			default:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is off\n", args[0])
			}
			return err
		})
	}
	return cmd
}
