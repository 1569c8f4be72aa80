package cli

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
)

func newTenantKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Issue, list, rotate and revoke API keys",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTenantKeyIssue(), newTenantKeyLs(), newTenantKeyRotate(), newTenantKeyRevoke())
	return cmd
}

func newTenantKeyIssue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue TENANT",
		Short: "Give a tenant one more API key, which is shown this once",
		Long: `Give a tenant one more API key, which is shown this once. A merchant has keys of
scope merchant. The tenant ` + platformWord + ` has those of administrators (--scope admin) and
of couriers (--scope courier --courier ID).`,
		Example: `  waybill tenant key issue 0190f5e0-0000-7000-8000-000000000001
  waybill tenant key issue platform --scope admin`,
		Args: cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	scope := cmd.Flags().String("scope", string(tenants.Merchant), "merchant, courier or admin")
	courier := cmd.Flags().String("courier", "", "whose key it is, with --scope courier")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tenant, err := tenantArg(args[0])
		if err != nil {
			return err
		}
		var who uuid.UUID
		if *courier != "" {
			if who, err = uuid.Parse(*courier); err != nil {
				return usagef("--courier %q: want a courier's id", *courier)
			}
		}
		switch tenants.Scope(*scope) {
		case tenants.Merchant, tenants.Courier, tenants.Admin:
		default:
			return usagef("--scope %q: want merchant, courier or admin", *scope)
		}
		return tenantHint(withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			if who != uuid.Nil {
				if _, err := couriers.New(db, nil, couriers.Config{}).Get(ctx, who); err != nil {
					return courierHint(err)
				}
			}
			k, err := tenants.New(db, tenants.Config{}).Issue(ctx, tenant, tenants.Scope(*scope), who)
			if err != nil {
				return err
			}
			return showIssued(cmd, k, *asJSON)
		}))
	}
	return cmd
}

// issued is a key as it is shown once. Only its hash is kept.
type issued struct {
	Tenant  uuid.UUID     `json:"tenant"`
	KeyID   uuid.UUID     `json:"key_id"`
	Scope   tenants.Scope `json:"scope"`
	Courier *uuid.UUID    `json:"courier,omitempty"`
	Key     string        `json:"key"`
}

func showIssued(cmd *cobra.Command, k tenants.Issued, asJSON bool) error {
	out := issued{Tenant: k.Tenant, KeyID: k.ID, Scope: k.Scope, Courier: courierOf(k.Key), Key: k.Secret}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), out)
	}
	rows := [][]string{{"tenant", tenantName(k.Tenant)}, {"key id", k.ID.String()}, {"scope", string(k.Scope)}}
	if out.Courier != nil {
		rows = append(rows, []string{"courier", out.Courier.String()})
	}
	return table(cmd.OutOrStdout(), append(rows, []string{"key", k.Secret}))
}

func tenantName(id uuid.UUID) string {
	if id == tenants.Platform {
		return platformWord
	}
	return id.String()
}

func courierOf(k tenants.Key) *uuid.UUID {
	if k.Courier == uuid.Nil {
		return nil
	}
	return &k.Courier
}

func newTenantKeyRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke TENANT KEY-ID",
		Short: "End an API key; within half a minute no process takes it",
		Args:  cobra.ExactArgs(2),
	}
	t := targetFlags(cmd, true)
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
			if err := d.RevokeKey(ctx, tenant, id); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is revoked; it ends within half a minute everywhere, and streams it opened within a minute\n", id)
			return err
		})
	}
	return cmd
}
