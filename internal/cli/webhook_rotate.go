package cli

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/webhook"
)

func newWebhookRotate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate ENDPOINT",
		Short: "Make a new secret, which is printed; the old one signs too for a while",
		Long: `Make a new secret, which is printed. The old one signs too until the overlap is
over, so that the receiver has that long to take the new one. 0s ends all old
ones at once: for a secret that leaked.`,
		Args: cobra.ExactArgs(1),
	}
	c := webhookFlags(cmd)
	overlap := cmd.Flags().Duration("overlap", webhook.DefaultOverlap, "for how long the old secret signs too, at most 720h")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return c.onEndpoint(args, func(ctx context.Context, s *webhook.Store, id uuid.UUID) error {
			all, err := s.Rotate(ctx, *c.tenant, id, *overlap)
			if err != nil {
				return err
			}
			until := "the old ones sign no more"
			if len(all) > 1 {
				until = "the old one signs too until " + all[1].ExpiresAt.Local().Format(time.RFC3339)
			}
			return c.done(map[string]any{"id": id, "secret": all[0].Key, "signing": len(all)}, "the receiver verifies with %s\n%s", all[0].Key, until)
		})
	}
	return cmd
}
