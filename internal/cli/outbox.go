package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/outbox/relay"
)

func newOutbox() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "outbox",
		Short: "Look at the outbox and its relay, give up an event",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOutboxStatus(), newOutboxSkip())
	cmd.AddCommand(newOutboxArchive())
	return cmd
}

// withDatabase runs do on the database that a command is about.
func withDatabase(cmd *cobra.Command, t *target, do func(context.Context, *pgxpool.Pool) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
	defer cancel()
	if err := t.resolve(); err != nil {
		return err
	}
	db, err := t.pool(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return noTables(do(ctx, db))
}

func newOutboxStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Backlog and its age, rate, the relay's replication slot, what has stopped",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			s, err := relay.ReadStatusOf(ctx, db, relay.Config{Mode: relay.Mode(t.cfg.Outbox.Relay)})
			if err != nil {
				return err
			}
			if t.upDir != "" {
				s.Slot.Advice = strings.ReplaceAll(s.Slot.Advice, relay.StartCommand, upCommand(t.upDir))
			}
			writers := weigh(t.cfg.Outbox, s)
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), struct {
					relay.Status
					budget
				}{s, writers})
			}
			return printStatus(cmd.OutOrStdout(), s, writers)
		})
	}
	return cmd
}

func printStatus(out io.Writer, s relay.Status, writers budget) error {
	if err := table(out, append(statusRows(s), writers.row())); err != nil {
		return err
	}
	if p := s.Publication; p != nil && p.Advice != "" {
		if _, err := fmt.Fprintf(out, "\npublication %s: %s\n", p.Name, p.Advice); err != nil {
			return err
		}
	}
	if s.Slot.Advice != "" {
		if _, err := fmt.Fprintf(out, "\nslot: %s\n", s.Slot.Advice); err != nil {
			return err
		}
	}
	for _, section := range []struct {
		title string
		rows  [][]string
	}{
		{"stopped partitions, each waiting for one event: mend the cause, or waybill outbox skip EVENT", stoppedRows(s.Stopped)},
		{"events to be given up", skipRows(s.Skips)},
		{"incidents of the last day; more by waybill incidents", incidentRows(s.Incidents)},
	} {
		if len(section.rows) < 2 { // a heading alone
			continue
		}
		if _, err := fmt.Fprintf(out, "\n%s\n", section.title); err != nil {
			return err
		}
		if err := table(out, section.rows); err != nil {
			return err
		}
	}
	return nil
}

func statusRows(s relay.Status) [][]string {
	rows := [][]string{
		{"backlog", backlogText(s)},
		{"oldest", oldestText(s)},
		{"published", rateText(s.PerSecond)},
		{"for later", laterText(s)},
		{"slot", slotText(s.Slot)},
		{"behind", known(s.Slot.LagBytes) + " of WAL not yet confirmed" + secondsText(s)},
		{"WAL kept", keptText(s.Slot)},
	}
	if p := s.Publication; p != nil && !p.Whole {
		text := p.Name + "  missing: somebody dropped it"
		if p.Exists {
			text = p.Name + "  leaves events out"
		}
		rows = append(rows, []string{"publication", text})
	}
	return rows
}

func backlogText(s relay.Status) string {
	if s.BacklogUnknown != "" {
		return "unknown: " + s.BacklogUnknown
	}
	text := plural(int64(s.Backlog), "event")
	if s.BacklogIsFloor {
		text = "at least " + text
	}
	return text + " committed and not yet marked as published"
}

func oldestText(s relay.Status) string {
	switch {
	case s.BacklogUnknown != "":
		return "unknown"
	case s.Oldest == nil:
		return "none"
	}
	return s.Oldest.Local().Format(time.RFC3339) + "  (" + ago(*s.Oldest) + ")"
}

func laterText(s relay.Status) string {
	if s.NextDue == nil {
		return "none"
	}
	return fmt.Sprintf("%d waiting, the next due %s", s.Later, s.NextDue.Local().Format(time.RFC3339))
}

func rateText(perSecond *float64) string {
	if perSecond == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f events/s over the last minute", *perSecond)
}

func slotText(s relay.SlotStatus) string {
	switch {
	case !s.Exists:
		return s.Name + "  missing: no relay has run on this database, or it was dropped since"
	case s.Active:
		return s.Name + "  active"
	}
	return s.Name + "  inactive: no relay reads it"
}

// secondsText is empty where the oldest event tells how long: it may wait for a
// partition that has stopped, and be confirmed all the same.
func secondsText(s relay.Status) string {
	switch seconds := s.Slot.LagSeconds; {
	case s.BacklogUnknown == "":
		return ""
	case seconds == nil:
		return ", an unknown time"
	default:
		return ", about " + duration(time.Duration(*seconds*float64(time.Second)).Round(time.Millisecond)) + " (estimated)"
	}
}

func keptText(s relay.SlotStatus) string {
	if !s.Exists {
		return "none, without a slot"
	}
	return known(s.RetainedBytes) + " by the slot, " + limitText(s.KeepLimit) + ", status " + or(s.WALStatus, "unknown")
}

func limitText(bytes *int64) string {
	if bytes == nil {
		return "which the server keeps without limit"
	}
	return "of " + size(*bytes) + " that the server keeps"
}

func stoppedRows(parts []relay.StoppedPart) [][]string {
	rows := [][]string{{"TOPIC", "PARTITION", "EVENT", "SINCE", "TRIED", "TIMES", "ERROR"}}
	for _, p := range parts {
		partition := fmt.Sprint(p.Partition)
		if p.Partition < 0 {
			partition = "all"
		}
		rows = append(rows, []string{
			p.Topic, partition, p.Event.String(), p.Since.Local().Format(time.RFC3339),
			ago(p.TriedAt), fmt.Sprint(p.Attempts), oneLine(p.Error),
		})
	}
	return rows
}

func skipRows(skips []relay.Skip) [][]string {
	rows := [][]string{{"EVENT", "ASKED", "BY", "REASON"}}
	for _, s := range skips {
		rows = append(rows, []string{s.Event.String(), s.AskedAt.Local().Format(time.RFC3339), oneLine(s.AskedBy), oneLine(s.Reason)})
	}
	return rows
}

// known is a size, or that there is none to tell.
func known(bytes *int64) string {
	if bytes == nil {
		return "unknown amount"
	}
	return size(*bytes)
}
