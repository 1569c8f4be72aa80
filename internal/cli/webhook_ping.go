package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/webhook"
)

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

// awaitPing waits for the first attempt, and says why there is none.
func (c *webhookCommand) awaitPing(ctx context.Context, s *webhook.Store, id, ev uuid.UUID, wait time.Duration) error {
	for end := time.Now().Add(wait); ; {
		d, err := s.Delivery(ctx, *c.tenant, id, ev)
		if err != nil {
			return err
		}
		p := webhookDeliveryOf(d)
		if p.State == webhook.Delivered {
			return c.done(map[string]any{"event": ev, "delivery": p}, "it answered %s after %d ms", p.last(), p.Log[0].Millis)
		}
		// After the delivery: what disabled it was noted with the attempt.
		e, err := s.Get(ctx, *c.tenant, id)
		if err != nil {
			return err
		}
		switch {
		case p.State == webhook.Failed || len(p.Log) > 0:
			return c.pingFailed(e, p)
		case e.OpenUntil != nil && wait == 0:
			return c.done(map[string]any{"event": ev, "open_until": e.OpenUntil}, "event %s waits: %s", ev, c.leftAlone(e, p))
		case e.OpenUntil != nil && e.OpenUntil.After(end):
			return fmt.Errorf("nothing was sent: %s", c.leftAlone(e, p))
		case wait == 0:
			return c.done(map[string]any{"event": ev}, "event %s is on its way: %s", ev, c.next("show", id.String(), ev.String()))
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

// pingFailed says what came of a ping, and what comes next.
func (c *webhookCommand) pingFailed(e webhook.Endpoint, p webhookDelivery) error {
	text := "it was not delivered"
	if len(p.Log) > 0 {
		text += ": " + strings.TrimRight(p.last(), ". ")
	}
	show := c.next("show", e.ID.String(), p.Event.String())
	switch {
	case e.State == webhook.Disabled:
		return fmt.Errorf("%s; the endpoint is disabled now (%s): when it is mended, `%s`", text, oneLine(e.Reason), c.next("enable", e.ID.String()))
	case p.State == webhook.Failed:
		return fmt.Errorf("%s, and is not tried again: `%s`", text, show)
	}
	return fmt.Errorf("%s; it is tried again: `%s`", text, show)
}

// leftAlone says until when an endpoint is not called.
func (c *webhookCommand) leftAlone(e webhook.Endpoint, p webhookDelivery) string {
	left := max(time.Second, time.Until(*e.OpenUntil).Round(time.Second))
	return fmt.Sprintf("the endpoint is left alone for another %s after %s in a row; the event is sent after that: `%s`",
		duration(left), plural(e.Failures, "failure"), c.next("show", e.ID.String(), p.Event.String()))
}
