package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
)

func newDLQLog() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "List what was redriven and dropped, by whom and why",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	group := cmd.Flags().String("group", "", "of this consumer group")
	tenant := cmd.Flags().String("tenant", "", "of this tenant")
	limit := cmd.Flags().Int("limit", 100, "at most so many, the latest")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit <= 0 {
			return usagef("--limit %d: want more than 0", *limit)
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			all, err := consumer.DeadActions(ctx, db, *group, *tenant, *limit)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			rows := [][]string{{"AT", "ACTION", "BY", "GROUP", "TOPIC", "PLACE", "KEY", "EVENT", "REASON"}}
			for _, a := range all {
				rows = append(rows, []string{
					a.At.Local().Format(time.RFC3339), a.Action, oneLine(a.By), oneLine(a.Group), oneLine(a.Topic),
					fmt.Sprintf("%d@%d", a.Partition, a.Offset), oneLine(a.Key), a.EventID, oneLine(a.Reason),
				})
			}
			return table(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}
