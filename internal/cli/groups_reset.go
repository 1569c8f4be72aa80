package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
)

// resetTimeout is for reading what lies between, which may be much.
const resetTimeout = 30 * time.Minute

func newGroupsReset() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset GROUP",
		Short: "Move a group, position and inbox together, so that it handles again or passes over",
		Long: `Moves a group's position, and takes what it then reads again out of its inbox
and its parked events, in one transaction: it is handled again, effects and all.
Members of the group have to be stopped first, except for partitions that are
stopped themselves (--stopped), as after a topic was made anew.`,
		Args: cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	f := cmd.Flags()
	topic := f.String("topic", "", "the topic; without it, all that the group has read")
	where := f.String("to", "", "beginning, now, an OFFSET, or a TIME of publishing such as 2026-03-01T12:00:00Z (required)")
	var o consumer.ResetOptions
	f.BoolVar(&o.Stopped, "stopped", false, "only partitions that are stopped; members may be running")
	f.BoolVar(&o.KeepInbox, "keep-inbox", false, "keep the record of what was handled: it is passed over")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would be done, and do nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		to, err := parseTo(*where)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), resetTimeout)
		defer cancel()
		if err := t.resolve(); err != nil {
			return err
		}
		db, err := t.pool(ctx)
		if err != nil {
			return err
		}
		defer db.Close()
		cl, err := t.client(ctx) // says what to do where none answers
		if err != nil {
			return err
		}
		cl.Close()
		deps := consumer.Deps{DB: db, Client: t.brokerConfig().Client}
		moved, err := consumer.Reset(ctx, deps, args[0], *topic, to, o)
		if err != nil {
			return noTables(err)
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), moved)
		}
		return printMoved(cmd.OutOrStdout(), moved, o.DryRun)
	}
	return cmd
}

func parseTo(text string) (consumer.To, error) {
	switch text {
	case "beginning":
		return consumer.ToBeginning(), nil
	case "now":
		return consumer.ToNow(), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return consumer.ToOffset(n), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return consumer.ToTime(at), nil
	}
	return consumer.To{}, usagef("--to %q: want beginning, now, an offset, or a time with its zone such as 2026-03-01T12:00:00Z", text)
}

func printMoved(out io.Writer, moved []consumer.Moved, dry bool) error {
	rows := [][]string{{"TOPIC", "PARTITION", "FROM", "TO", "READ AGAIN", "PASSED OVER", "FORGOTTEN", "UNPARKED"}}
	for _, m := range moved {
		from, forgotten, unparked := "none", strconv.FormatInt(m.Forgotten, 10), strconv.FormatInt(m.Unparked, 10)
		if m.From != nil {
			from = strconv.FormatInt(*m.From, 10)
		}
		if dry {
			forgotten, unparked = "not counted", "not counted"
		}
		rows = append(rows, []string{
			m.Topic, strconv.Itoa(int(m.Partition)), from, strconv.FormatInt(m.To, 10),
			strconv.FormatInt(m.Again, 10), strconv.FormatInt(m.Passed, 10), forgotten, unparked,
		})
	}
	if err := table(out, rows); err != nil || !dry {
		return err
	}
	_, err := fmt.Fprintln(out, "\nnothing was done: leave --dry-run out to do it")
	return err
}
