package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/logistica/faults"
)

func newFaultSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME VALUE",
		Short: "Set a fault; every process sees it within a second",
		Long: `Set a fault; every process sees it within a second. ` + "`waybill fault ls`" + ` lists the
names. The value is a percentage, milliseconds, a number of events, or 1 for on;
0 clears the fault.`,
		Example: `  waybill fault set billing-failure 30 --for 5m
  waybill fault set poison-event 1`,
		Args: cobra.ExactArgs(2),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	last := cmd.Flags().Duration("for", 0, "for how long, such as 5m; 0s until it is cleared")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		value, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return usagef("value %q: want a whole number, without a unit", args[1])
		}
		return withFaults(cmd, t, func(ctx context.Context, f *faults.Flags) error {
			s, err := f.Set(ctx, args[0], value, *last, operator())
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(cmd.OutOrStdout(), s)
			case s.Value == 0:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is off\n", s.Name)
			case *last > 0:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s for %s\n", s.Name, faultValue(s), duration(*last))
			default:
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s until `waybill fault clear %s`\n", s.Name, faultValue(s), s.Name)
			}
			return err
		})
	}
	return cmd
}
