package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
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
	cmd.AddCommand(newTenantCreate(), newTenantLs(), newTenantKey())
	return cmd
}

func newTenantCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a merchant with an API key, which is shown this once",
		Args:  cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withTenants(cmd, t, func(ctx context.Context, d *tenants.Directory) error {
			made, err := d.Create(ctx, args[0])
			if err != nil {
				return err
			}
			k, err := d.Issue(ctx, made.ID, tenants.Merchant, uuid.Nil)
			if err != nil {
				return fmt.Errorf("the merchant is there and has no key; `waybill tenant key issue %s` gives one: %w", made.ID, err)
			}
			return showIssued(cmd, k, *asJSON)
		})
	}
	return cmd
}

// withTenants is withDatabase for merchants and keys, whose refusals say what to
// do.
func withTenants(cmd *cobra.Command, t *target, do func(context.Context, *tenants.Directory) error) error {
	return tenantHint(withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
		return do(ctx, tenants.New(db, tenants.Config{CacheFor: time.Second}))
	}))
}

func tenantHint(err error) error {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return errors.New("no such tenant: `waybill tenant ls` lists them, `waybill tenant create NAME` makes one")
	case errors.Is(err, tenants.ErrNoKey):
		return errors.New("no such key, or it has ended: `waybill tenant key ls TENANT` lists them")
	case errors.Is(err, tenants.ErrScope), errors.Is(err, tenants.ErrGrace):
		return usageError{err}
	case errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000"): // no such table or schema
		return fmt.Errorf("the database has no tables yet: the first `waybill up` or `waybill run` makes them: %w", err)
	}
	return err
}

// platformWord is how a command line names [tenants.Platform].
const platformWord = "platform"

func tenantArg(text string) (uuid.UUID, error) {
	if text == platformWord {
		return tenants.Platform, nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, usagef("tenant %q: want an id as `waybill tenant create` printed it or `waybill tenant ls` lists it, or the word %s", text, platformWord)
	}
	return id, nil
}

func keyArg(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil { // which may be a key, and is not repeated
		return uuid.Nil, usagef("that is no key's id: want one that `waybill tenant key ls TENANT` lists, not the key itself")
	}
	return id, nil
}
