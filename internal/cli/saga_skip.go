package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/saga"
)

func newSagaSkip() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skip [SAGA] KEY --reason TEXT",
		Short: "Say that the step that is waited for was seen to by hand; services are told, and go on",
		Args:  cobra.RangeArgs(1, 2),
	}
	asJSON, t, r := jsonFlag(cmd), targetFlags(cmd, true), refFlagsOf(cmd)
	step := cmd.Flags().String("step", "", "only if it is this one that is waited for")
	reason := cmd.Flags().String("reason", "", "what was done instead, kept in the record (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ask, err := askFor(*reason)
		if err != nil {
			return err
		}
		if strings.TrimSpace(*reason) == "" {
			return usagef("--reason: say what was done instead; it is kept in the record")
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			ref, err := r.find(ctx, db, args)
			if err != nil {
				return err
			}
			in, err := saga.Skip(ctx, db, ref, *step, ask)
			if err != nil {
				return sagaHint(err)
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), in)
			}
			next := "it is " + string(in.State)
			if !in.State.Ended() {
				next = "it waits for step " + in.Step
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s round %d: %s; services are told within seconds, while a process with the role saga runs\n", in.Saga, oneLine(in.Key), in.Round, next)
			return err
		})
	}
	return cmd
}
