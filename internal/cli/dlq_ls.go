package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
)

func newDLQLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List dead letters by cause, or each blocked key with --keys",
		Args:  cobra.NoArgs,
	}
	asJSON, t, d := jsonFlag(cmd), targetFlags(cmd, true), deadFlagsOf(cmd)
	keys := cmd.Flags().Bool("keys", false, "each key with the event it waits for")
	limit := cmd.Flags().Int("limit", 100, "at most so many")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, _, err := d.read()
		if err != nil {
			return err
		}
		if *limit <= 0 {
			return usagef("--limit %d: want more than 0", *limit)
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			var found any
			var rows [][]string
			if *keys {
				all, err := consumer.DeadKeys(ctx, db, f, *limit)
				if err != nil {
					return err
				}
				found, rows = all, deadKeyRows(all)
			} else {
				all, err := consumer.DeadCauses(ctx, db, f, *limit)
				if err != nil {
					return err
				}
				found, rows = all, causeRows(all)
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), found)
			}
			if len(rows) < 2 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "nothing is dead")
				return err
			}
			return table(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

func causeRows(causes []consumer.DeadCause) [][]string {
	rows := [][]string{{"CAUSE", "GROUP", "TOPIC", "TYPE", "CLASS", "KEYS", "TENANTS", "FIRST", "LAST", "ERROR"}}
	for _, c := range causes {
		rows = append(rows, []string{
			or(c.ID, "-"), oneLine(c.Group), oneLine(c.Topic), oneLine(c.Type), or(c.Class, "-"), strconv.FormatInt(c.Keys, 10),
			strconv.FormatInt(c.Tenants, 10), c.First.Local().Format(time.RFC3339), ago(c.Last), oneLine(c.Cause),
		})
	}
	return rows
}

func deadKeyRows(keys []consumer.DeadKey) [][]string {
	rows := [][]string{{"GROUP", "TOPIC", "PLACE", "KEY", "EVENT", "TENANT", "STATE", "SINCE", "BEHIND", "TRIES", "CAUSE", "ERROR"}}
	for _, k := range keys {
		rows = append(rows, []string{
			oneLine(k.Group), oneLine(k.Topic), fmt.Sprintf("%d@%d", k.Partition, k.Offset), oneLine(k.Key), k.EventID, oneLine(k.Tenant),
			k.State, since(k), strconv.FormatInt(k.Behind, 10), strconv.Itoa(k.Failures), or(k.Cause, "-"), oneLine(k.Error),
		})
	}
	return rows
}

func since(k consumer.DeadKey) string {
	switch {
	case k.DeadAt != nil:
		return k.DeadAt.Local().Format(time.RFC3339)
	case k.First != nil:
		return k.First.Local().Format(time.RFC3339)
	}
	return "unknown"
}
