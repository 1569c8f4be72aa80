package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/outbox/archive"
	"github.com/waybillhq/waybill/outbox/tables"
)

func newOutboxArchive() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "Look at the events that left the outbox, or let old ones leave now",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newArchiveLs(), newArchiveVerify(), newArchiveRun())
	return cmd
}

func newArchiveLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the files that events went to",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			files, err := tables.Archives(ctx, db)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), append([]tables.Archived{}, files...))
			}
			if len(files) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "no events have left the outbox for an archive yet")
				return err
			}
			return table(cmd.OutOrStdout(), archiveRows(files))
		})
	}
	return cmd
}

func archiveRows(files []tables.Archived) [][]string {
	rows := [][]string{{"FILE", "EVENTS", "SIZE", "WRITTEN", "LEFT THE OUTBOX", "PLACE"}}
	for _, f := range files {
		left := "not yet"
		if f.DroppedAt != nil {
			left = f.DroppedAt.Local().Format(time.RFC3339)
		}
		rows = append(rows, []string{
			f.File, strconv.FormatInt(f.Events, 10), size(f.Bytes), f.WrittenAt.Local().Format(time.RFC3339), left, oneLine(f.Place),
		})
	}
	return rows
}

func newArchiveVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [DIR|FILE...]",
		Short: "Read files of an archive from beginning to end and compare them with their digests",
		Long: `Reads files of an archive from beginning to end and compares each with its own
count and digest. A folder stands for its whole archive. Without any, it is the
configured archive, or that of the waybill in --dir; files are then missed, too,
that the database knows to have been written there.`,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := verifyArchive(cmd, t, args)
		if err != nil {
			return err
		}
		if *asJSON {
			err = printJSON(cmd.OutOrStdout(), found)
		} else if len(found) == 0 {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "no events have left the outbox for an archive yet")
		} else {
			err = printVerified(cmd.OutOrStdout(), found)
		}
		bad := 0
		for _, v := range found {
			if v.Error != "" {
				bad++
			}
		}
		if err == nil && bad > 0 {
			err = fmt.Errorf("%d of %s damaged or missing", bad, plural(len(found), "file"))
		}
		return err
	}
	return cmd
}

// verified is what was found of one file.
type verified struct {
	Path   string `json:"path"`
	Events int64  `json:"events"`
	Digest string `json:"digest"`
	Error  string `json:"error,omitempty"`
}

// printVerified tells what is wrong with a file below the table, which such a
// text would stretch past any screen.
func printVerified(out io.Writer, found []verified) error {
	if err := table(out, verifiedRows(found)); err != nil {
		return err
	}
	for _, v := range found {
		if v.Error == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "\n%s: %s\n", v.Path, oneLine(v.Error)); err != nil {
			return err
		}
	}
	return nil
}

func verifiedRows(found []verified) [][]string {
	rows := [][]string{{"FILE", "EVENTS", "STATE"}}
	for _, v := range found {
		if v.Error != "" {
			rows = append(rows, []string{v.Path, "", "bad, see below"})
		} else {
			rows = append(rows, []string{v.Path, strconv.FormatInt(v.Events, 10), "sound"})
		}
	}
	return rows
}

func verifyArchive(cmd *cobra.Command, t *target, args []string) ([]verified, error) {
	all := len(args) == 0
	if all {
		if err := t.resolve(); err != nil {
			return nil, err
		}
		args = []string{cmp.Or(t.cfg.Outbox.ArchiveDir, app.ArchiveDir(t.dir))}
	}
	paths, err := archivePaths(args)
	askable := all && t.cfg.DatabaseURL != "" // the database knows whether there should be any
	if err != nil && (!askable || !errors.Is(err, os.ErrNotExist)) {
		return nil, err
	}
	found := make([]verified, 0, len(paths))
	for _, path := range paths {
		f, err := archive.Verify(cmd.Context(), path)
		if cmd.Context().Err() != nil {
			return nil, cmd.Context().Err()
		}
		v := verified{Path: path, Events: f.Events, Digest: f.Digest.String()}
		if err != nil {
			v = verified{Path: path, Error: err.Error()}
		}
		found = append(found, v)
	}
	if !all || t.cfg.DatabaseURL == "" {
		return found, nil
	}
	missing, err := missingFiles(cmd, t, tables.Place(args[0]), found)
	return append(found, missing...), err
}

// archivePaths are the files that files and folders stand for.
func archivePaths(args []string) (paths []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, fmt.Errorf("%w; nothing was archived there yet, or it is elsewhere: name the folder", err)
		}
		if !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		inside, err := archive.List(arg)
		if err != nil {
			return nil, err
		}
		paths = append(paths, inside...)
	}
	return paths, nil
}

// missingFiles are those the database knows of a place, and that were not found
// there as they were written.
func missingFiles(cmd *cobra.Command, t *target, place string, found []verified) (missing []verified, err error) {
	err = withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
		known, err := tables.Archives(ctx, db)
		if err != nil {
			return err
		}
		for _, f := range known {
			here := slices.ContainsFunc(found, func(v verified) bool { return v.Digest == f.Digest })
			if f.Place == place && !here {
				missing = append(missing, verified{Path: f.File, Error: fmt.Sprintf("missing: the database knows of %s written here with digest %.12s…", plural(f.Events, "event"), f.Digest)})
			}
		}
		return nil
	})
	return missing, err
}

func newArchiveRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Archive old published events and let them leave the outbox, now",
		Long: `Does at once what the relay's process does every hour: events of days older than
outbox.keep_days, all published, are written to the archive, read back and
compared, and leave the outbox. What a transaction is using, or the relay might
need, stays for the next time and is told.`,
		Args: cobra.NoArgs,
	}
	asJSON, t, level := jsonFlag(cmd), targetFlags(cmd, true), logFlag(cmd)
	dir := cmd.Flags().String("archive-dir", "", "folder of the archive (default: as configured, or that of the waybill in --dir)")
	days := cmd.Flags().Int("keep-days", 0, "days to keep, 1 or more (default: as configured, or "+strconv.Itoa(tables.DefaultKeepDays)+")")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, err := newLogger(cmd.ErrOrStderr(), *level)
		if err != nil {
			return err
		}
		if *days == 0 && cmd.Flags().Changed("keep-days") {
			return usagef("--keep-days 0: want 1 or more: days that may still be read are not let go")
		}
		if err := t.resolve(); err != nil {
			return err
		}
		cfg, err := t.retention(*dir, *days)
		if err != nil {
			return err
		}
		cfg.Logger = log
		db, err := t.pool(cmd.Context())
		if err != nil {
			return err
		}
		defer db.Close()
		report, err := tables.NewRetention(db, cfg).Once(cmd.Context())
		if *asJSON { // with empty lists rather than null
			report.Archived, report.Kept = append([]archive.File{}, report.Archived...), append([]tables.Kept{}, report.Kept...)
			report.Emptied, report.Dropped = append([]string{}, report.Emptied...), append([]string{}, report.Dropped...)
			return errors.Join(printJSON(cmd.OutOrStdout(), report), noTables(err))
		}
		return errors.Join(printReport(cmd.OutOrStdout(), report), noTables(err))
	}
	return cmd
}

// retention is as configured, unless the flags say otherwise.
func (t *target) retention(dir string, days int) (tables.RetentionConfig, error) {
	o := t.cfg.Outbox
	if days != 0 {
		o.KeepDays = &days
	}
	o.ArchiveDir = cmp.Or(dir, o.ArchiveDir)
	if dir != "" {
		o.Archive = nil // with a copy after all
	}
	if o.ArchiveDir == "" && !o.Discards() {
		if app.ReadAddresses(t.dir) == (app.Addresses{}) {
			return tables.RetentionConfig{}, usagef("no folder for the archive: name one with --archive-dir, or as outbox.archive_dir in the configuration file")
		}
		o.ArchiveDir = app.ArchiveDir(t.dir)
	}
	if err := o.CheckRetention(); err != nil {
		return tables.RetentionConfig{}, usageError{err}
	}
	return tables.RetentionConfig{KeepDays: o.Days(), Dir: o.ArchiveDir, Discard: o.Discards()}, nil
}

func printReport(out io.Writer, r tables.Report) error {
	if r.Elsewhere {
		_, err := fmt.Fprintln(out, "another process is at it just now; nothing was done")
		return err
	}
	rows := [][]string{}
	for _, f := range r.Archived {
		rows = append(rows, []string{"archived", f.Label, fmt.Sprintf("%s in %s, %s", plural(f.Events, "event"), f.Path, size(f.Bytes))})
	}
	for _, name := range r.Emptied {
		rows = append(rows, []string{"left the outbox", name, ""})
	}
	for _, name := range r.Dropped {
		rows = append(rows, []string{"partition dropped", name, ""})
	}
	for _, k := range r.Kept {
		rows = append(rows, []string{"stays", k.What, oneLine(k.Why)})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, "nothing is old enough to leave")
		return err
	}
	return table(out, rows)
}
