package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/registry"
)

func newDLQShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show EVENT-ID",
		Short: "Show a dead or parked event: how it failed, its headers, its body if the registry can decode it",
		Args:  cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	group := cmd.Flags().String("group", "", "of this consumer group")
	tenant := cmd.Flags().String("tenant", "", "only if it is this tenant's")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := uuid.Parse(args[0]); err != nil {
			return usagef("event %q: want an id, as `waybill dlq ls --keys` shows them", args[0])
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			e, err := consumer.ShowDead(ctx, db, *group, *tenant, args[0])
			if err != nil {
				return fmt.Errorf("%w: see `waybill dlq ls --keys --parked`", err)
			}
			out := deadShown{DeadEvent: e}
			if out.Body, err = t.decoded(ctx, e.Value); err != nil {
				out.Unreadable = err.Error()
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), out)
			}
			return out.print(cmd.OutOrStdout())
		})
	}
	return cmd
}

// decodeWithin bounds what a registry that does not answer costs.
const decodeWithin = 5 * time.Second

func (t *target) decoded(ctx context.Context, value []byte) (json.RawMessage, error) {
	client, err := t.registryClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, decodeWithin)
	defer cancel()
	_, body, err := registry.NewDecoder(client).DecodeAny(ctx, value)
	return body, registryHint(err)
}

type deadShown struct {
	consumer.DeadEvent
	Body       json.RawMessage `json:"body,omitempty"`
	Unreadable string          `json:"unreadable,omitempty"` // why there is no body
}

func (d deadShown) print(out io.Writer) error {
	copied := "not yet"
	switch {
	case d.CopiedAt != nil:
		copied = d.CopiedAt.Local().Format(time.RFC3339) + "  " + consumer.DeadTopic(d.Topic, d.Group)
	case d.CopyError != "":
		copied = "refused: " + d.CopyError
	}
	rows := [][]string{
		{"event", d.EventID},
		{"type", d.Type},
		{"tenant", d.Tenant},
		{"group", d.Group},
		{"place", fmt.Sprintf("%s %d@%d", d.Topic, d.Partition, d.Offset)},
		{"key", d.Key},
		{"published", d.Published.Local().Format(time.RFC3339)},
		{"state", fmt.Sprintf("%s since %s, %s of its key behind it", d.State, since(d.DeadKey), plural(d.Behind, "event"))},
		{"failed", fmt.Sprintf("%d times, class %s, cause %s", d.Failures, or(d.Class, "-"), or(d.Cause, "-"))},
		{"error", d.Error},
		{"copy", copied},
	}
	for _, h := range d.Headers {
		rows = append(rows, []string{"  " + h.Name, h.Value})
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
		}
	}
	if err := table(out, rows); err != nil {
		return err
	}
	if d.Unreadable == "" {
		_, err := fmt.Fprintf(out, "\n%s\n", d.Body)
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s, cannot be decoded: %s\n%s", size(int64(len(d.Value))), oneLine(d.Unreadable), hex.Dump(d.Value[:min(len(d.Value), 1024)]))
	return err
}
