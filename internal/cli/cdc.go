package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/cdc"
)

func newCDC() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cdc",
		Short: "Look at the tables whose changes are published, and have one read again",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCDCStatus(), newCDCSnapshot(), newCDCDrop())
	return cmd
}

func newCDCStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tables, their topics and snapshots, and the replication slot",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return t.withDatabase(cmd.Context(), func(ctx context.Context, db *pgxpool.Pool) error {
			s, err := cdc.ReadStatus(ctx, db, "")
			if err != nil {
				return cdcHint(err)
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), s)
			}
			return table(cmd.OutOrStdout(), cdcRows(s))
		})
	}
	return cmd
}

func newCDCSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot TABLE",
		Short: "Have a table read and published again, whole",
		Long: `Has the process that publishes the table's changes read all of it again, while
changes go on being published. Rows come as events of operation r; keys that
the topic has and the table has not are deleted. Afterwards the last record of
each key is the table's row.`,
		Example: "  waybill cdc snapshot orders.orders",
		Args:    cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.withDatabase(cmd.Context(), func(ctx context.Context, db *pgxpool.Pool) error {
			err := cdc.RequestSnapshot(ctx, db, "", args[0])
			if errors.Is(err, cdc.ErrUnknownTable) {
				return unknownTable(ctx, db, err)
			}
			if err != nil {
				return cdcHint(err)
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"table": args[0], "asked": true})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "asked for; waybill cdc status tells how far it is\n")
			return err
		})
	}
	return cmd
}

func newCDCDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop",
		Short: "Take slot and publication away, so that the database keeps no WAL for changes",
		Long: `Takes replication slot, publication and what is known of tables and snapshots out
of the database, for one that is to publish no changes any more. Topics stay.
Publishing again begins with a snapshot of every table.`,
		Args: cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return t.withDatabase(cmd.Context(), func(ctx context.Context, db *pgxpool.Pool) error {
			if err := cdc.Drop(ctx, db, "", ""); err != nil {
				return cdcHint(err)
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{
					"dropped": true, "slot": cdc.SlotName(db.Config().ConnConfig.Database), "publication": cdc.DefaultPublication,
				})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "dropped; set cdc: {off: true} in the configuration, or the next start begins anew")
			return err
		})
	}
	return cmd
}

// withDatabase runs ask on the target's database.
func (t *target) withDatabase(ctx context.Context, ask func(context.Context, *pgxpool.Pool) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := t.resolve(); err != nil {
		return err
	}
	db, err := t.pool(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return ask(ctx, db)
}

// cdcHint says what a missing table means.
func cdcHint(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42P01" {
		return errors.New("no waybill that publishes changes has run on this database yet: start `waybill up`, or `waybill run cdc`")
	}
	return err
}

// unknownTable names the tables there are.
func unknownTable(ctx context.Context, db *pgxpool.Pool, unknown error) error {
	s, err := cdc.ReadStatus(ctx, db, "")
	if err != nil {
		return unknown
	}
	names := make([]string, len(s.Tables))
	for i, t := range s.Tables {
		names[i] = t.Table
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: no table's are; name some under cdc.tables in the configuration", unknown)
	}
	return fmt.Errorf("%w: those of %s are", unknown, strings.Join(names, ", "))
}

func cdcRows(s cdc.Status) [][]string {
	rows := [][]string{{"TABLE", "TOPIC", "SNAPSHOT", "ROWS", "BEFORE"}}
	for _, t := range s.Tables {
		before := "key only"
		if t.Before {
			before = "whole row"
		}
		rows = append(rows, []string{t.Table, t.Topic, snapshotText(t), snapshotRows(t.Snapshot), before})
	}
	if len(s.Tables) == 0 {
		rows = [][]string{{"no table's changes are published"}}
	}
	slot := s.Slot.Name + "  missing: nothing that publishes changes runs on this database, or the slot was dropped"
	if s.Slot.Exists {
		slot = s.Slot.Name + "  inactive: nobody reads it"
		if s.Slot.Active {
			slot = s.Slot.Name + "  active"
		}
	}
	rows = append(rows, nil, []string{"slot", slot},
		[]string{"behind", known(s.Slot.LagBytes) + " of WAL not yet confirmed"},
		[]string{"WAL kept", known(s.Slot.RetainedBytes) + " by the slot, status " + or(s.Slot.WALStatus, "unknown")})
	if s.Slot.Losses > 0 {
		rows = append(rows, []string{"lost", fmt.Sprintf("%d times: all tables were read again each time; waybill incidents tells when", s.Slot.Losses)})
	}
	for _, t := range s.Tables {
		if t.Error != nil {
			rows = append(rows, []string{"stopped", t.Table + ": " + *t.Error})
		}
	}
	return rows
}

func snapshotText(t cdc.TableStatus) string {
	s := t.Snapshot
	switch {
	case t.Error != nil:
		return "stopped, see below"
	case s.Pending:
		return "asked for"
	case s.Phase == "done" && s.FinishedAt != nil:
		return "done " + s.FinishedAt.Local().Format(time.RFC3339)
	}
	return s.Phase
}

func snapshotRows(s cdc.SnapshotStatus) string {
	switch {
	case s.Phase == "done":
		return fmt.Sprint(s.RowsRead)
	case s.RowsTotal == nil: // a table that was never analysed
		return fmt.Sprintf("%d so far", s.RowsRead)
	}
	return fmt.Sprintf("%d of about %d", s.RowsRead, *s.RowsTotal)
}
