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
		ev, err := webhookID("event", args[1])
		if err != nil {
			return err
		}
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			if err := s.Resend(ctx, *c.tenant, id, ev); err != nil {
				return err
			}
			return c.done(map[string]any{"endpoint": id, "event": ev}, "event %s is on its way: waybill webhook show %s %s --tenant %s", ev, id, ev, *c.tenant)
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

func newWebhookPing() *cobra.Command {
	cmd := &cobra.Command{Use: "ping ENDPOINT", Short: "Send an endpoint an event of type " + webhook.PingType + ", and wait for what comes of it", Args: cobra.ExactArgs(1)}
	c := webhookFlags(cmd)
	wait := cmd.Flags().Duration("wait", 10*time.Second, "for how long to wait, at most 10s; 0s: not at all")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if *wait < 0 || *wait > 10*time.Second {
			return usagef("--wait %s: want 0s to 10s", *wait)
		}
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			ev, err := s.Ping(ctx, *c.tenant, id)
			if err != nil {
				return err
			}
			return c.awaitPing(ctx, s, id, ev, *wait)
		})
	}
	return cmd
}

// awaitPing waits for the first attempt.
func (c *webhookCommand) awaitPing(ctx context.Context, s *webhook.Store, id, ev uuid.UUID, wait time.Duration) error {
	for end := time.Now().Add(wait); ; {
		d, err := s.Delivery(ctx, *c.tenant, id, ev)
		if err != nil {
			return err
		}
		p := webhookDeliveryOf(d)
		switch {
		case p.State == webhook.Delivered:
			return c.done(map[string]any{"event": ev, "delivery": p}, "it answered %s after %d ms", p.last(), p.Log[0].Millis)
		case len(p.Log) > 0:
			return fmt.Errorf("it was not delivered: %s; it is tried again: waybill webhook show %s %s", p.last(), id, ev)
		case wait == 0:
			return c.done(map[string]any{"event": ev}, "event %s is on its way: waybill webhook show %s %s --tenant %s", ev, id, ev, *c.tenant)
		case !time.Now().Before(end):
			return fmt.Errorf("nothing was sent within %s: does a sender run? `waybill up` and `waybill run webhook` have one", wait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
