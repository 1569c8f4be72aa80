package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
)

func newGroupsGaps() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gaps GROUP",
		Short: "List numbers of keys that a group reported missing, and events that came behind a higher one",
		Long: `Lists what a group that looks at the numbers of events (ce_sequence) has reported:
numbers of a key that had not come when the group went on or gave up waiting, and
events that came behind a higher number of their key. It is kept for 90 days.
Events that still wait are in waybill groups show and, if they are dead, in
waybill dlq ls.`,
		Args: cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	tenant := cmd.Flags().String("tenant", "", "of this tenant")
	limit := cmd.Flags().Int("limit", 100, "at most so many, the latest")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *limit <= 0 {
			return usagef("--limit %d: want more than 0", *limit)
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			all, err := consumer.FoundGaps(ctx, db, args[0], *tenant, *limit)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), append([]consumer.Gap{}, all...))
			}
			if len(all) == 0 {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has reported no gaps; a group looks for them if its Config.Gaps says so\n", args[0])
				return err
			}
			return table(cmd.OutOrStdout(), gapRows(all))
		})
	}
	return cmd
}

func gapRows(all []consumer.Gap) [][]string {
	rows := [][]string{{"FOUND", "KIND", "NUMBERS", "KEY", "TENANT", "TOPIC", "TOLD BY", "EVENT"}}
	for _, g := range all {
		numbers := fmt.Sprint(g.First)
		if g.Last > g.First {
			numbers = fmt.Sprintf("%d to %d", g.First, g.Last)
		}
		rows = append(rows, []string{
			g.FoundAt.Local().Format(time.RFC3339), g.Kind, numbers, oneLine(g.Key), oneLine(g.Tenant), oneLine(g.Topic),
			fmt.Sprintf("%d@%d", g.Partition, g.Offset), g.EventID,
		})
	}
	return rows
}
