package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/webhook"
)

func newWebhookResend() *cobra.Command {
	cmd := &cobra.Command{Use: "resend ENDPOINT EVENT", Short: "Send an event to an endpoint again, or for the first time", Args: cobra.ExactArgs(2)}
	c := webhookFlags(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		ev, err := c.id("event", args[1])
		if err != nil {
			return err
		}
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			if err := s.Resend(ctx, *c.tenant, id, ev); err != nil {
				return err
			}
			return c.done(map[string]any{"endpoint": id, "event": ev}, "event %s is on its way: %s", ev, c.next("show", id.String(), ev.String()))
		})
	}
	return cmd
}

func newWebhookReplay() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay ENDPOINT",
		Short: "Send many events to an endpoint again: what failed, or all of a time",
		Example: `  waybill webhook replay ENDPOINT --tenant T --failed
  waybill webhook replay ENDPOINT --tenant T --since 6h`,
		Args: cobra.ExactArgs(1),
	}
	c := webhookFlags(cmd)
	f := cmd.Flags()
	failed := f.Bool("failed", false, "what was given up; else all that the endpoint wants, delivered or not")
	since := f.Duration("since", 0, "of events of so long; required unless --failed")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if !*failed && *since <= 0 {
			return usagef("what is to be sent again? give --failed, or --since 6h for all of that time")
		}
		r := webhook.Replay{Failed: *failed, Until: time.Now()}
		if *since > 0 {
			r.Since = time.Now().Add(-*since)
		}
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			var count int64
			for {
				page, err := s.Replay(ctx, *c.tenant, id, r)
				if err != nil {
					return fmt.Errorf("after %s: %w", plural(count, "event"), err)
				}
				count += page.Count
				if r.After = page.Next; r.After == uuid.Nil {
					return c.done(map[string]any{"count": count}, "%s on their way again", plural(count, "event"))
				}
			}
		})
	}
	return cmd
}
