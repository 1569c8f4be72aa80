package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/incident"
)

func newIncidents() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "incidents",
		Short: "List what an operator must hear of: lost slots, stopped partitions, events given up",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	since := cmd.Flags().Duration("since", 24*time.Hour, "how far back, such as 30m or 168h")
	limit := cmd.Flags().Int("limit", 100, "at most so many, the latest")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *since <= 0 || *limit <= 0 {
			return usagef("--since %s --limit %d: want more than 0", *since, *limit)
		}
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
		seen, err := incident.List(ctx, db, time.Now().Add(-*since), *limit)
		if err != nil {
			return noTables(err)
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), seen)
		}
		if len(seen) == 0 {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "no incidents in the last %s\n", duration(*since))
			return err
		}
		return table(cmd.OutOrStdout(), incidentRows(seen))
	}
	return cmd
}

func incidentRows(seen []incident.Seen) [][]string {
	rows := [][]string{{"LAST SEEN", "TIMES", "PART", "KIND", "SUBJECT", "WHAT"}}
	for _, s := range seen {
		rows = append(rows, []string{
			s.LastAt.Local().Format(time.RFC3339), strconv.FormatInt(s.Count, 10),
			oneLine(s.Part), oneLine(s.Kind), oneLine(s.Subject), oneLine(s.Text),
		})
	}
	return rows
}

// oneLine keeps a stored text from breaking the table, and from commanding the
// terminal: it may quote what a stranger sent.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// noTables adds what to do where the tables are not there, or are older than
// this program.
func noTables(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42703" || pg.Code == "3F000") {
		return fmt.Errorf("the database has no tables of this version: `waybill up` or `waybill run` makes them when it starts: %w", err)
	}
	return err
}
