package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/logistica/tenants"
)

func newTenant() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "Make merchants and their API keys",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTenantCreate(), newTenantKey())
	return cmd
}

func newTenantCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a merchant with an API key, which is shown this once",
		Args:  cobra.ExactArgs(1),
	}
	return tenantCommand(cmd, func(ctx context.Context, d *tenants.Directory, name string) (issued, error) {
		t, err := d.Create(ctx, name)
		if err != nil {
			return issued{}, err
		}
		return issue(ctx, d, t.ID)
	})
}

func newTenantKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key TENANT-ID",
		Short: "Give a merchant one more API key, which is shown this once",
		Args:  cobra.ExactArgs(1),
	}
	return tenantCommand(cmd, func(ctx context.Context, d *tenants.Directory, id string) (issued, error) {
		tenant, err := uuid.Parse(id)
		if err != nil {
			return issued{}, usagef("tenant %q: want the id that `waybill tenant create` printed", id)
		}
		return issue(ctx, d, tenant)
	})
}

// issued is a key as it is shown once. Only its hash is kept.
type issued struct {
	Tenant uuid.UUID `json:"tenant"`
	KeyID  uuid.UUID `json:"key_id"`
	Key    string    `json:"key"`
}

func issue(ctx context.Context, d *tenants.Directory, tenant uuid.UUID) (issued, error) {
	key, id, err := d.IssueKey(ctx, tenant, tenants.Merchant)
	return issued{tenant, id, key}, err
}

func tenantHint(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "42P01", "3F000": // no such table or schema
		return fmt.Errorf("the database has no tables yet: the first `waybill up` or `waybill run` makes them: %w", err)
	case "23503": // the key's tenant
		return errors.New("no such tenant: make one with `waybill tenant create NAME`")
	}
	return err
}

func tenantCommand(cmd *cobra.Command, do func(context.Context, *tenants.Directory, string) (issued, error)) *cobra.Command {
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
		defer cancel()
		if err := t.resolve(); err != nil {
			return err
		}
		db, err := t.pool(ctx)
		if err != nil {
			return err
		}
		defer db.Close()
		key, err := do(ctx, tenants.New(db, tenants.Config{CacheFor: time.Second}), args[0])
		if err != nil {
			return tenantHint(err)
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), key)
		}
		return table(cmd.OutOrStdout(), [][]string{
			{"tenant", key.Tenant.String()}, {"key id", key.KeyID.String()}, {"key", key.Key},
		})
	}
	return cmd
}
