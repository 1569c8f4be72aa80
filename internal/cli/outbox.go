package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/outbox/relay"
)

func newOutbox() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "outbox",
		Short: "Look at the outbox and its relay",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOutboxStatus())
	return cmd
}

func newOutboxStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Backlog, its age, and the relay's replication slot",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
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
		s, err := relay.ReadStatus(ctx, db, "")
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), s)
		}
		return table(cmd.OutOrStdout(), statusRows(s))
	}
	return cmd
}

func statusRows(s relay.Status) [][]string {
	backlog := fmt.Sprint(s.Backlog)
	if s.BacklogIsFloor {
		backlog = "at least " + backlog
	}
	oldest := "none"
	if s.Oldest != nil {
		oldest = s.Oldest.Local().Format(time.RFC3339) + "  (" + duration(time.Since(*s.Oldest)) + " ago)"
	}
	slot := s.Slot.Name + "  missing: no relay has run on this database, or it was dropped since"
	if s.Slot.Exists {
		state := "inactive: no relay reads it"
		if s.Slot.Active {
			state = "active"
		}
		slot = s.Slot.Name + "  " + state
	}
	return [][]string{
		{"backlog", backlog + " events committed and not yet marked as published"},
		{"oldest", oldest},
		{"slot", slot},
		{"behind", known(s.Slot.LagBytes) + " of WAL not yet confirmed"},
		{"WAL kept", known(s.Slot.RetainedBytes) + " by the slot, status " + or(s.Slot.WALStatus, "unknown")},
	}
}

// known is a size, or that there is none to tell.
func known(bytes *int64) string {
	if bytes == nil {
		return "unknown amount"
	}
	return size(*bytes)
}
