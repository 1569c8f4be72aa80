package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// keyRow is a key as JSON: never the key itself.
type keyRow struct {
	ID        uuid.UUID        `json:"id"`
	Scope     tenants.Scope    `json:"scope"`
	Courier   *uuid.UUID       `json:"courier,omitempty"`
	Hint      string           `json:"hint,omitempty"`
	State     tenants.KeyState `json:"state"`
	CreatedAt time.Time        `json:"created_at"`
	EndsAt    *time.Time       `json:"ends_at,omitempty"`
	RevokedAt *time.Time       `json:"revoked_at,omitempty"`
}

func newTenantKeyLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls TENANT",
		Short: "List a tenant's API keys, the newest first; the keys themselves are kept nowhere",
		Args:  cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	limit := cmd.Flags().Int("limit", 100, "how many")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tenant, err := tenantArg(args[0])
		if err != nil {
			return err
		}
		if *limit < 1 || *limit > 10_000 {
			return usagef("--limit %d: want 1 to 10000", *limit)
		}
		return withTenants(cmd, t, func(ctx context.Context, d *tenants.Directory) error {
			list, err := d.Keys(ctx, tenant, uuid.Nil, *limit)
			if err != nil {
				return err
			}
			if *asJSON {
				out := make([]keyRow, len(list))
				for i, k := range list {
					out[i] = keyRow{k.ID, k.Scope, courierOf(k), k.Hint, k.State(time.Now()), k.CreatedAt, k.EndsAt, k.RevokedAt}
				}
				return printJSON(cmd.OutOrStdout(), out)
			}
			if len(list) == 0 {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "no keys: `waybill tenant key issue %s` gives one\n", args[0])
				return err
			}
			return table(cmd.OutOrStdout(), tenantKeyRows(list))
		})
	}
	return cmd
}

func tenantKeyRows(list []tenants.Key) [][]string {
	rows := [][]string{{"KEY", "HINT", "SCOPE", "CREATED", "STATE", "COURIER"}}
	for _, k := range list {
		state, courier := string(k.State(time.Now())), "-"
		switch {
		case k.RevokedAt != nil:
			state += " " + ago(*k.RevokedAt)
		case k.EndsAt != nil && time.Now().Before(*k.EndsAt):
			state += " in " + duration(time.Until(*k.EndsAt).Round(time.Second))
		case k.EndsAt != nil:
			state += " " + ago(*k.EndsAt)
		}
		if c := courierOf(k); c != nil {
			courier = c.String()
		}
		rows = append(rows, []string{k.ID.String(), or(k.Hint, "-"), string(k.Scope), ago(k.CreatedAt), state, courier})
	}
	return rows
}
