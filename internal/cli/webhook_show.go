package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/webhook"
)

// webhookDelivery is a delivery as it is printed.
type webhookDelivery struct {
	Event      uuid.UUID             `json:"event"`
	Type       string                `json:"type"`
	State      webhook.DeliveryState `json:"state"`
	Attempts   int                   `json:"attempts"`
	StoredAt   time.Time             `json:"stored_at"`
	FinishedAt *time.Time            `json:"finished_at"`
	NextAt     *time.Time            `json:"next_at"`
	Log        []webhook.Attempt     `json:"log"`
}

func webhookDeliveryOf(d webhook.Delivery) webhookDelivery {
	return webhookDelivery{d.EventID, d.Type, d.State, d.Attempts, d.StoredAt, d.FinishedAt, d.NextAt, d.Log}
}

// made counts the attempts there were, also those before it was sent again. The
// log has the latest of them.
func (d webhookDelivery) made() int { return max(d.Attempts, len(d.Log)) }

// last says what came of the last attempt.
func (d webhookDelivery) last() string {
	if len(d.Log) == 0 {
		return "-"
	}
	return attemptText(d.Log[len(d.Log)-1])
}

// attemptedAt is when the next attempt is due; nil if there is none. An endpoint that
// is left alone is not called before that is over, whenever its deliveries are due.
func (d webhookDelivery) attemptedAt(e webhook.Endpoint) *time.Time {
	if d.NextAt != nil && e.OpenUntil != nil && e.OpenUntil.After(*d.NextAt) {
		return e.OpenUntil
	}
	return d.NextAt
}

func attemptText(a webhook.Attempt) string {
	if a.Error != "" {
		return oneLine(a.Error)
	}
	text := strconv.Itoa(a.Status)
	if a.Answer != "" {
		text += " " + oneLine(a.Answer)
	}
	return text
}

func newWebhookShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ENDPOINT [EVENT]",
		Short: "Show an endpoint's deliveries, or one with its attempts",
		Args:  cobra.RangeArgs(1, 2),
	}
	c := webhookFlags(cmd)
	f := cmd.Flags()
	state := f.String("state", "", "in this state: pending, delivered or failed")
	since := f.Duration("since", 0, "of events of so long; all that are kept if left out")
	limit := f.Int("limit", 20, "at most so many, up to 500")
	before := f.String("before", "", "of events before this one: the last of the page before")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		switch webhook.DeliveryState(*state) {
		case "", webhook.Pending, webhook.Delivered, webhook.Failed:
		default:
			return usagef("--state %s: want pending, delivered or failed", *state)
		}
		if *limit <= 0 || *limit > 500 {
			return usagef("--limit %d: want 1 to 500", *limit)
		}
		filter := webhook.DeliveryFilter{State: webhook.DeliveryState(*state), Limit: *limit}
		if *since > 0 {
			filter.Since = time.Now().Add(-*since)
		}
		if *before != "" {
			id, err := c.id("event", *before)
			if err != nil {
				return err
			}
			filter.Before = id
		}
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			if len(args) == 2 {
				return c.showOne(ctx, s, id, args[1])
			}
			return c.showAll(ctx, s, id, filter)
		})
	}
	return cmd
}

func (c *webhookCommand) showAll(ctx context.Context, s *webhook.Store, id uuid.UUID, f webhook.DeliveryFilter) error {
	e, err := s.Get(ctx, *c.tenant, id)
	if err != nil {
		return err
	}
	all, err := s.Deliveries(ctx, *c.tenant, id, f)
	if err != nil {
		return err
	}
	v, out, rows := webhookEndpointOf(e), []webhookDelivery{}, [][]string{{"EVENT", "TYPE", "STATE", "ATTEMPTS", "LAST", "NEXT"}}
	for _, d := range all {
		p := webhookDeliveryOf(d)
		out = append(out, p)
		next := "-"
		if at := p.attemptedAt(e); at != nil {
			next = "in " + duration(max(0, time.Until(*at)).Round(time.Second))
		}
		rows = append(rows, []string{p.Event.String(), oneLine(p.Type), string(p.State), strconv.Itoa(p.made()), fmt.Sprintf("%.60s", p.last()), next})
	}
	if *c.json {
		return printJSON(c.cmd.OutOrStdout(), map[string]any{"endpoint": v, "deliveries": out})
	}
	if err := c.done(nil, "%s  %s\ntypes %s, %s\n", v.ID, oneLine(v.URL), v.wants(), v.health()); err != nil {
		return err
	}
	if len(all) == 0 {
		return c.done(nil, "no deliveries")
	}
	return table(c.cmd.OutOrStdout(), rows)
}

func (c *webhookCommand) showOne(ctx context.Context, s *webhook.Store, id uuid.UUID, text string) error {
	ev, err := c.id("event", text)
	if err != nil {
		return err
	}
	d, err := s.Delivery(ctx, *c.tenant, id, ev)
	if err != nil {
		return err
	}
	p := webhookDeliveryOf(d)
	if *c.json {
		return printJSON(c.cmd.OutOrStdout(), p)
	}
	if err := c.done(nil, "%s  %s  %s after %s\n", p.Event, oneLine(p.Type), p.State, plural(p.made(), "attempt")); err != nil {
		return err
	}
	rows := [][]string{{"AT", "TOOK", "WHAT CAME OF IT"}}
	for _, a := range p.Log {
		rows = append(rows, []string{a.At.Local().Format(time.RFC3339), duration(time.Duration(a.Millis) * time.Millisecond), attemptText(a)})
	}
	return table(c.cmd.OutOrStdout(), rows)
}
