package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
)

func newGroupsShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show GROUP",
		Short: "Show how a group stands with each partition: position, owner, what is stopped or stalled",
		Args:  cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			all, err := consumer.Partitions(ctx, db, args[0])
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), append([]consumer.PartitionState{}, all...))
			}
			if len(all) == 0 {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has read nothing with its positions in this database: `waybill groups` lists those the broker knows\n", args[0])
				return err
			}
			return table(cmd.OutOrStdout(), partitionRows(all))
		})
	}
	return cmd
}

func partitionRows(all []consumer.PartitionState) [][]string {
	rows := [][]string{{"TOPIC", "PARTITION", "NEXT", "SAVED", "EPOCH", "OWNER SINCE", "PARKED", "STATE"}}
	for _, p := range all {
		next, saved, since, state := "none", "never", "never", "ok"
		if p.Next != nil {
			next = strconv.FormatInt(*p.Next, 10)
		}
		if p.SavedAt != nil {
			saved = ago(*p.SavedAt)
		}
		if p.Since != nil {
			since = ago(*p.Since)
		}
		switch {
		case p.Stopped != "":
			state = "stopped: " + oneLine(p.Stopped)
		case p.Stalled != "":
			state = "stalled: " + oneLine(p.Stalled)
		}
		parked := "0"
		if p.Parked > 0 {
			parked = fmt.Sprintf("%d of %s", p.Parked, plural(p.Keys, "key"))
		}
		if p.Gaps > 0 {
			parked += fmt.Sprintf(", %d at a gap", p.Gaps)
		}
		rows = append(rows, []string{
			p.Topic, strconv.Itoa(int(p.Partition)), next, saved, strconv.FormatInt(p.Epoch, 10), since, parked, state,
		})
	}
	return rows
}
