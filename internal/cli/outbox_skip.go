package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/outbox/relay"
)

// maxReason bounds the words of an operator.
const maxReason = 1000

func newOutboxSkip() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skip EVENT-ID",
		Short: "Give up an event that the broker refuses, so that its partition goes on without it",
		Args:  cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	reason := cmd.Flags().String("reason", "", "why, kept with the event (required)")
	force := cmd.Flags().Bool("force", false, "also an event that no partition waits for")
	undo := cmd.Flags().Bool("undo", false, "take back what was asked and is not carried out yet")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := uuid.Parse(args[0])
		if err != nil {
			return usagef("event %q: want the id that `waybill outbox status` shows", args[0])
		}
		text := strings.TrimSpace(*reason)
		switch {
		case *undo && (*force || text != ""):
			return usagef("--undo takes neither --reason nor --force")
		case !*undo && (text == "" || len(text) > maxReason):
			return usagef("--reason: want 1 to %d bytes that say why the event is given up", maxReason)
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			if *undo {
				return undoSkip(ctx, cmd, db, id, *asJSON)
			}
			asked, err := relay.AskSkip(ctx, db, relay.Skip{Event: id, Reason: text, AskedBy: operator()}, *force)
			if err != nil {
				return skipHint(err)
			}
			told := skipped{Skip: asked.Skip, Again: asked.Again, Stopped: asked.Stopped}
			told.Effect = told.effect()
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), told)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), told.text())
			return err
		})
	}
	return cmd
}

func undoSkip(ctx context.Context, cmd *cobra.Command, db *pgxpool.Pool, id uuid.UUID, asJSON bool) error {
	was, err := relay.UndoSkip(ctx, db, id)
	switch {
	case errors.Is(err, relay.ErrNotAsked):
		return fmt.Errorf("%w: see `waybill outbox status` for those that are to be", err)
	case errors.Is(err, relay.ErrPublished):
		return fmt.Errorf("%w: too late", err)
	case err != nil:
		return err
	case asJSON:
		return printJSON(cmd.OutOrStdout(), map[string]any{"undone": true, "was": was})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "event %s is not to be given up any more; %s had asked for it at %s: %s\n",
		id, oneLine(was.AskedBy), was.AskedAt.Local().Format(time.RFC3339), oneLine(was.Reason))
	return err
}

// skipped is what a skip will do.
type skipped struct {
	relay.Skip
	Again   bool               `json:"noted_before"` // then the reason is the first one
	Stopped *relay.StoppedPart `json:"stopped"`      // nil: no partition waits for it
	Effect  string             `json:"effect"`
}

func (s skipped) text() string {
	if s.Again {
		return fmt.Sprintf("event %s is noted already, by %s at %s, whose reason stays: %s\n%s",
			s.Event, oneLine(s.AskedBy), s.AskedAt.Local().Format(time.RFC3339), oneLine(s.Reason), s.Effect)
	}
	return fmt.Sprintf("event %s is to be given up: %s", s.Event, s.Effect)
}

func (s skipped) effect() string {
	if s.Stopped == nil {
		return "no partition waits for it. If the broker refuses it, the relay passes over it then; if not, it is published like any other"
	}
	where := fmt.Sprintf("partition %d of %s goes", s.Stopped.Partition, s.Stopped.Topic)
	if s.Stopped.Partition < 0 {
		where = s.Stopped.Topic + " goes"
	}
	return "the relay marks it as never published, and " + where + " on with what is behind it, within a second or so while a relay runs. Consumers will find its sequence missing under its key"
}

func skipHint(err error) error {
	switch {
	case errors.Is(err, relay.ErrUnknownEvent):
		return fmt.Errorf("%w: see `waybill outbox status` for those that do wait; --force notes one that stands in the WAL alone", err)
	case errors.Is(err, relay.ErrNotRefused):
		return fmt.Errorf("%w: see `waybill outbox status` for those that do wait; --force gives it up all the same, once it is refused", err)
	}
	return err
}

// operator is who asks, as far as this machine knows.
func operator() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
