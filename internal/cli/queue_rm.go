package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/queue"
)

func newQueueRm() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm QUEUE",
		Short:   "Remove a queue that is empty",
		Example: "  waybill queue rm mail",
		Args:    cobra.ExactArgs(1),
	}
	c := queueFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.ask(cmd.Context(), func(ctx context.Context, db *pgxpool.Pool) error {
			err := queue.Remove(ctx, db, *c.tenant, args[0])
			if errors.Is(err, queue.ErrUnknown) {
				return fmt.Errorf("%w: waybill queue ls lists those there are", err)
			}
			if err != nil {
				return err
			}
			if *c.json {
				return printJSON(cmd.OutOrStdout(), map[string]string{"tenant": *c.tenant, "removed": args[0]})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "queue %s is removed\n", args[0])
			return err
		})
	}
	return cmd
}
