package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// tenantRow is a merchant as JSON.
type tenantRow struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

func newTenantLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the merchants, the newest first",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	limit := cmd.Flags().Int("limit", 100, "how many")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 1 || *limit > 10_000 {
			return usagef("--limit %d: want 1 to 10000", *limit)
		}
		return withTenants(cmd, t, func(ctx context.Context, d *tenants.Directory) error {
			list, err := d.List(ctx, uuid.Nil, *limit)
			if err != nil {
				return err
			}
			if *asJSON {
				out := make([]tenantRow, len(list))
				for i, l := range list {
					out[i] = tenantRow(l)
				}
				return printJSON(cmd.OutOrStdout(), out)
			}
			if len(list) == 0 {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "no merchants: `waybill tenant create NAME` makes one")
				return err
			}
			rows := [][]string{{"TENANT", "CREATED", "NAME"}}
			for _, l := range list {
				rows = append(rows, []string{l.ID.String(), ago(l.CreatedAt), oneLine(l.Name)})
			}
			return table(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}
