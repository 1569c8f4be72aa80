package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/logistica/tenants"
)

func newTenantKeyRotate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate TENANT KEY-ID",
		Short: "Put a new API key, shown this once, in the place of one, which goes on for a grace period",
		Long: `Put a new API key, shown this once, in the place of one. The new key works at
once; the old one until its grace period is over, so that whoever bears it has
that long to take the new one. 0s ends it at once: for a key that leaked. Of a
key that is rotated again the period only gets shorter.`,
		Args: cobra.ExactArgs(2),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	grace := cmd.Flags().Duration("grace", tenants.DefaultGrace, "for how long the old key goes on, at most 720h")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tenant, err := tenantArg(args[0])
		if err != nil {
			return err
		}
		id, err := keyArg(args[1])
		if err != nil {
			return err
		}
		return withTenants(cmd, t, func(ctx context.Context, d *tenants.Directory) error {
			k, err := d.Rotate(ctx, tenant, id, *grace)
			if err != nil {
				return err
			}
			return showIssued(cmd, k, *asJSON)
		})
	}
	return cmd
}
