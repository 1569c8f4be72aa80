package cli

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/webhook"
)

// webhookEndpoint is an endpoint as it is printed.
type webhookEndpoint struct {
	ID           uuid.UUID  `json:"id"`
	URL          string     `json:"url"`
	Description  string     `json:"description,omitempty"`
	Types        []string   `json:"types"`
	Ordered      bool       `json:"ordered"`
	Algorithm    string     `json:"algorithm"`
	State        string     `json:"state"`
	Reason       string     `json:"reason,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
	Failures     int        `json:"failures"`
	FailingSince *time.Time `json:"failing_since"`
	OpenUntil    *time.Time `json:"open_until"`
	Secret       string     `json:"secret,omitempty"` // of a new one
}

func webhookEndpointOf(e webhook.Endpoint) webhookEndpoint {
	return webhookEndpoint{
		ID: e.ID, URL: e.URL, Description: e.Description, Types: e.Types, Ordered: e.Ordered, Algorithm: string(e.Algorithm), State: string(e.State),
		Reason: e.Reason, CreatedAt: e.CreatedAt, Failures: e.Failures, FailingSince: e.FailingSince, OpenUntil: e.OpenUntil,
	}
}

// health says in a few words how an endpoint does.
func (e webhookEndpoint) health() string {
	switch {
	case e.State == string(webhook.Disabled):
		return strings.TrimSuffix("disabled: "+oneLine(e.Reason), ": ")
	case e.FailingSince == nil:
		return "well"
	case e.OpenUntil != nil:
		return plural(e.Failures, "failure") + ", called again in " + duration(time.Until(*e.OpenUntil).Round(time.Second))
	}
	return plural(e.Failures, "failure") + ", the first " + ago(*e.FailingSince)
}

func (e webhookEndpoint) wants() string {
	if len(e.Types) == 0 {
		return "all"
	}
	return strings.Join(e.Types, " ")
}

func newWebhookLs() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List a tenant's endpoints and how they do", Args: cobra.NoArgs}
	c := webhookFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return c.ask(func(ctx context.Context, s *webhook.Store) error {
			all, err := s.List(ctx, *c.tenant)
			if err != nil {
				return err
			}
			out, rows := []webhookEndpoint{}, [][]string{{"ENDPOINT", "URL", "TYPES", "HEALTH"}}
			for _, e := range all {
				v := webhookEndpointOf(e)
				out = append(out, v)
				rows = append(rows, []string{v.ID.String(), oneLine(v.URL), v.wants(), v.health()})
			}
			switch {
			case *c.json:
				return printJSON(cmd.OutOrStdout(), out)
			case len(all) == 0:
				return c.done(nil, "no endpoints; make one: %s", c.next("add", "URL"))
			}
			return table(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

func newWebhookAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "add URL",
		Short:   "Have an address called about a tenant's events; prints the secret to verify with",
		Example: "  waybill webhook add https://example.com/hook --tenant T --types 'logistica.orders.>'",
		Args:    cobra.ExactArgs(1),
	}
	c := webhookFlags(cmd)
	var in webhook.Settings
	f := cmd.Flags()
	f.StringSliceVar(&in.Types, "types", nil, "patterns of event types, such as logistica.orders.>; all if left out")
	f.StringVar(&in.Description, "description", "", "a line for people")
	f.BoolVar(&in.Ordered, "ordered", false, "one event of a key at a time, in order; one that fails holds back those behind it")
	algorithm := f.String("algorithm", string(webhook.HMAC), "hmac: a shared secret; ed25519: a pair, of which the receiver has the public key")
	f.StringSliceVar(&c.allow, "allow", nil, "networks that are let through though they are not public, as the sender is configured: 127.0.0.0/8")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		in.URL, in.Algorithm = args[0], webhook.Algorithm(*algorithm)
		return c.askWith(func(ctx context.Context, db *pgxpool.Pool, s *webhook.Store) error {
			merchant, err := merchantArg(*c.tenant)
			if err != nil {
				return err
			}
			*c.tenant = merchant.String() // as events have it, however it was written
			if err := checkMerchant(ctx, db, merchant); err != nil {
				return err
			}
			e, err := s.Create(ctx, *c.tenant, in)
			if err != nil {
				return err
			}
			warnUnmatched(cmd.ErrOrStderr(), in.Types, app.WebhookTypes())
			secrets, err := s.Secrets(ctx, *c.tenant, e.ID)
			if err != nil {
				return err
			}
			v := webhookEndpointOf(e)
			v.Secret = secrets[0].Key
			if *c.json {
				return printJSON(cmd.OutOrStdout(), v)
			}
			return c.done(nil, "endpoint %s is called about %s\nits receiver verifies with %s\ntry it: %s",
				v.ID, v.wants(), v.Secret, c.next("ping", v.ID.String()))
		})
	}
	return cmd
}

func newWebhookEnable() *cobra.Command {
	cmd := &cobra.Command{Use: "enable ENDPOINT", Short: "Have an endpoint called again", Args: cobra.ExactArgs(1)}
	c := webhookFlags(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			if err := s.Enable(ctx, *c.tenant, id); err != nil {
				return err
			}
			return c.done(map[string]any{"id": id, "state": webhook.Enabled},
				"endpoint %s is called about what comes from now on; what failed is sent by %s", id, c.next("replay", id.String(), "--failed"))
		})
	}
	return cmd
}

func newWebhookDisable() *cobra.Command {
	cmd := &cobra.Command{Use: "disable ENDPOINT", Short: "Stop calling an endpoint; what waits for it fails", Args: cobra.ExactArgs(1)}
	c := webhookFlags(cmd)
	reason := cmd.Flags().String("reason", "", "why, for its tenant to read")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			if err := s.Disable(ctx, *c.tenant, id, *reason); err != nil {
				return err
			}
			return c.done(map[string]any{"id": id, "state": webhook.Disabled}, "endpoint %s is no longer called, within some seconds", id)
		})
	}
	return cmd
}

func newWebhookRm() *cobra.Command {
	cmd := &cobra.Command{Use: "rm ENDPOINT", Short: "Delete an endpoint and its secrets", Args: cobra.ExactArgs(1)}
	c := webhookFlags(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			if err := s.Delete(ctx, *c.tenant, id); err != nil {
				return err
			}
			return c.done(map[string]any{"id": id, "deleted": true}, "endpoint %s is deleted", id)
		})
	}
	return cmd
}
