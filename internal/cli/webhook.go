package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
)

func newWebhook() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Who is called about events: endpoints, their secrets, what was delivered; send again",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newWebhookLs(), newWebhookAdd(), newWebhookShow(), newWebhookEnable(), newWebhookDisable(), newWebhookRm(), newWebhookRotate(),
		newWebhookResend(), newWebhookReplay(), newWebhookPing(), newWebhookListen(),
	)
	return cmd
}

// webhookCommand is what the commands share: whose endpoints, on which database.
type webhookCommand struct {
	*target
	cmd    *cobra.Command
	tenant *string
	json   *bool
	allow  []string

	endpoint uuid.UUID // that the command is about, if it is about one
}

func webhookFlags(cmd *cobra.Command) *webhookCommand {
	return &webhookCommand{
		target: targetFlags(cmd, true), json: jsonFlag(cmd), cmd: cmd,
		tenant: cmd.Flags().String("tenant", "", "whose endpoints, by the tenant's id"),
	}
}

// ask runs do on the store, with the tables there.
func (c *webhookCommand) ask(do func(context.Context, *webhook.Store) error) error {
	return c.askWith(func(ctx context.Context, _ *pgxpool.Pool, s *webhook.Store) error { return do(ctx, s) })
}

// askWith is ask with the database too.
func (c *webhookCommand) askWith(do func(context.Context, *pgxpool.Pool, *webhook.Store) error) error {
	if *c.tenant == "" {
		return usagef("whose endpoints? give --tenant, as `waybill tenant ls` lists them")
	}
	return c.explain(withDatabase(c.cmd, c.target, func(ctx context.Context, db *pgxpool.Pool) error {
		s, err := c.store(db)
		if err != nil {
			return err
		}
		return do(ctx, db, s)
	}))
}

// store opens secrets with the configured keys, or with that of the waybill in
// the folder whose database it is.
func (c *webhookCommand) store(db *pgxpool.Pool) (*webhook.Store, error) {
	in := c.cfg.Webhooks
	in.Allow = append(in.Allow, c.allow...)
	rules, err := in.Guard()
	if err != nil {
		return nil, usageError{err}
	}
	keys, err := in.SealKeys()
	if err != nil {
		return nil, usageError{err}
	}
	if c.upDir != "" {
		own, err := app.WebhookKey(c.upDir)
		if err != nil {
			return nil, err
		}
		if own != nil {
			keys = append(keys, own)
		}
	}
	if len(keys) == 0 {
		return webhook.NewStore(db, nil, guard.New(rules), webhook.StoreConfig{}), nil
	}
	box, err := seal.New(keys...)
	if err != nil {
		return nil, err
	}
	return webhook.NewStore(db, box, guard.New(rules), webhook.StoreConfig{}), nil
}

// explain makes what the caller got wrong a usage error, and says which command
// helps.
func (c *webhookCommand) explain(err error) error {
	switch {
	case errors.Is(err, webhook.ErrInvalid):
		return usageError{err}
	case errors.Is(err, webhook.ErrNoKey):
		return fmt.Errorf("%w; give this program the same as those that send, in %s", err, config.EnvWebhookKeys)
	case errors.Is(err, seal.ErrKey):
		return fmt.Errorf("%w (%s)", err, config.EnvWebhookKeys)
	case errors.Is(err, webhook.ErrNotFound):
		return fmt.Errorf("%w; `%s` lists endpoints, and `waybill webhook show ENDPOINT` an endpoint's deliveries", err, c.next("ls"))
	case errors.Is(err, webhook.ErrDisabled):
		return fmt.Errorf("%w: `%s`", err, c.next("enable", c.endpoint.String()))
	}
	return err
}

func (c *webhookCommand) id(what, text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, usagef("%s %q: want an id; `%s` lists endpoints, and `waybill webhook show ENDPOINT` their events", what, text, c.next("ls"))
	}
	return id, nil
}

// onEndpoint runs do on the endpoint that the first argument names.
func (c *webhookCommand) onEndpoint(args []string, do func(context.Context, *webhook.Store, uuid.UUID) error) error {
	id, err := c.id("endpoint", args[0])
	if err != nil {
		return err
	}
	c.endpoint = id
	return c.ask(func(ctx context.Context, s *webhook.Store) error { return do(ctx, s, id) })
}

// done says what was done, to people or machines.
func (c *webhookCommand) done(v map[string]any, format string, args ...any) error {
	if *c.json {
		return printJSON(c.cmd.OutOrStdout(), v)
	}
	_, err := fmt.Fprintf(c.cmd.OutOrStdout(), format+"\n", args...)
	return err
}
