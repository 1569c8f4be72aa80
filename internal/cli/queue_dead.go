package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/queue"
)

// queueDead is a dead letter as it is printed.
type queueDead struct {
	ID          uuid.UUID         `json:"id"`
	Deliveries  int               `json:"deliveries"`
	Error       string            `json:"error"`
	SentAt      time.Time         `json:"sent_at"`
	DiedAt      time.Time         `json:"died_at"`
	Priority    int               `json:"priority"`
	Group       string            `json:"group,omitempty"`
	ContentType string            `json:"content_type"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        any               `json:"body"`
}

func newQueueDead() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead QUEUE",
		Short: "List dead letters, oldest first; with --drop remove them for good",
		Args:  cobra.ExactArgs(1),
	}
	c := queueFlags(cmd)
	limit := cmd.Flags().Int("limit", 50, "at most so many")
	after := cmd.Flags().String("after", "", "begin behind the dead letter with this id")
	drop := cmd.Flags().StringSlice("drop", nil, `ids to remove for good, or "all"`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dropped, err := parseIDs("--drop", *drop)
		if err != nil {
			return err
		}
		from := uuid.Nil
		if *after != "" {
			if from, err = uuid.Parse(*after); err != nil {
				return usagef("--after %q: want an id as this command lists them", *after)
			}
		}
		return c.withQueue(cmd.Context(), args[0], func(ctx context.Context, _ *pgxpool.Pool, q *queue.Queue) error {
			if len(*drop) > 0 {
				n, err := q.Drop(ctx, dropped...)
				return c.counted(cmd, n, "dropped", err)
			}
			all, err := q.Dead(ctx, from, *limit)
			if err != nil {
				return err
			}
			return c.printDead(cmd, all)
		})
	}
	return cmd
}

func (c queueCommand) printDead(cmd *cobra.Command, all []queue.Dead) error {
	out, rows := []queueDead{}, [][]string{{"ID", "DIED", "DELIVERIES", "GROUP", "ERROR", "BODY"}}
	for _, d := range all {
		out = append(out, queueDead{
			d.ID, d.Deliveries, d.Error, d.SentAt, d.DiedAt, d.Priority, d.Group, d.ContentType, d.Headers, bodyOf(d.Body, d.ContentType),
		})
		rows = append(rows, []string{
			d.ID.String(), ago(d.DiedAt), fmt.Sprint(d.Deliveries), oneLine(or(d.Group, "none")), oneLine(d.Error), oneLine(string(d.Body)),
		})
	}
	switch {
	case *c.json:
		return printJSON(cmd.OutOrStdout(), out)
	case len(all) == 0:
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "no dead letters")
		return err
	}
	return table(cmd.OutOrStdout(), rows)
}

func newQueueRedrive() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redrive QUEUE [ID...]",
		Short: "Put dead letters back into the queue, those named or all",
		Args:  cobra.MinimumNArgs(1),
	}
	c := queueFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := parseIDs("dead letter", args[1:])
		if err != nil {
			return err
		}
		return c.withQueue(cmd.Context(), args[0], func(ctx context.Context, _ *pgxpool.Pool, q *queue.Queue) error {
			n, err := q.Redrive(ctx, ids...)
			return c.counted(cmd, n, "back in the queue", err)
		})
	}
	return cmd
}

// parseIDs reads ids; none for "all".
func parseIDs(what string, given []string) ([]uuid.UUID, error) {
	if len(given) == 1 && given[0] == "all" {
		return nil, nil
	}
	ids := make([]uuid.UUID, len(given))
	for i, g := range given {
		id, err := uuid.Parse(g)
		if err != nil {
			return nil, usagef("%s %q: want an id as waybill queue dead lists them", what, g)
		}
		ids[i] = id
	}
	return ids, nil
}
