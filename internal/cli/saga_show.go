package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/saga"
)

func newSagaShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [SAGA] KEY",
		Short: "Show an instance: its events with what caused which, what was overdue, what operators did",
		Args:  cobra.RangeArgs(1, 2),
	}
	asJSON, t, r := jsonFlag(cmd), targetFlags(cmd, true), refFlagsOf(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			ref, err := r.find(ctx, db, args)
			if err != nil {
				return err
			}
			d, err := saga.Get(ctx, db, ref)
			if err != nil {
				return sagaHint(err)
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), d)
			}
			text := saga.Timeline(d, time.Now())
			if d.State == saga.NeedsOperator {
				text += fmt.Sprintf("mend what is wrong and have it asked for anew: waybill saga resume %s %s\nor see to it by hand and say so:                 waybill saga skip %s %s --reason TEXT\n",
					d.Saga, oneLine(d.Key), d.Saga, oneLine(d.Key))
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		})
	}
	return cmd
}
