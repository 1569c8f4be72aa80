package cli

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/saga"
)

func newSagaResume() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume [SAGA] KEY",
		Short: "Have the step that needs an operator asked for anew, as often as is declared",
		Args:  cobra.RangeArgs(1, 2),
	}
	asJSON, t, r := jsonFlag(cmd), targetFlags(cmd, true), refFlagsOf(cmd)
	reason := cmd.Flags().String("reason", "", "why, kept in the record")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ask, err := askFor(*reason)
		if err != nil {
			return err
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			ref, err := r.find(ctx, db, args)
			if err != nil {
				return err
			}
			in, err := saga.Resume(ctx, db, ref, ask)
			if err != nil {
				return sagaHint(err)
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), in)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s round %d: step %s will be asked for within seconds, while a process with the role saga runs\n", in.Saga, oneLine(in.Key), in.Round, in.Step)
			return err
		})
	}
	return cmd
}
