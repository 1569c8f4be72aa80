package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
)

func newDLQDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop --group GROUP (EVENT-ID | --topic TOPIC --key KEY)",
		Short: "Give up a dead or parked event, or all that is parked of a key; what is behind goes on",
		Args:  cobra.MaximumNArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	var d consumer.Dropping
	var key string
	ask := consumer.Ask{By: operator()}
	f := cmd.Flags()
	f.StringVar(&d.Group, "group", "", "of this consumer group (required)")
	f.StringVar(&d.Topic, "topic", "", "of this topic")
	f.StringVar(&d.Tenant, "tenant", "", "only if it is this tenant's")
	f.StringVar(&key, "key", "", "the whole sequence of this key")
	f.StringVar(&ask.Reason, "reason", "", "why, kept with each event (required)")
	f.BoolVar(&ask.DryRun, "dry-run", false, "only count")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			if _, err := uuid.Parse(args[0]); err != nil {
				return usagef("event %q: want an id, as `waybill dlq ls --keys` shows them", args[0])
			}
			d.Event = args[0]
		}
		if f.Changed("key") {
			d.Key = &key
		}
		if text := strings.TrimSpace(ask.Reason); text == "" || len(text) > maxReason {
			return usagef("--reason: want 1 to %d bytes that say why it is given up", maxReason)
		}
		if err := d.Check(); err != nil {
			return usagef("%w; see %s --help", err, cmd.CommandPath())
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			out, err := consumer.Drop(ctx, db, d, ask)
			switch {
			case err != nil:
				return err
			case *asJSON:
				return printJSON(cmd.OutOrStdout(), out)
			case out.Events == 0:
				return fmt.Errorf("nothing to drop: see `waybill dlq ls --keys --parked --group %s`", d.Group)
			}
			text := "%s given up; what is behind goes on within seconds while a member of the group runs\n"
			if ask.DryRun {
				text = "%s would be given up\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, plural(out.Events, "event"))
			return err
		})
	}
	return cmd
}
