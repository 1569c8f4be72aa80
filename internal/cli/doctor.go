package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/doctor"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/outbox/relay"
)

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for misconfiguration and trouble ahead, and tell what mends it",
		Long: `Looks at the database, the broker and the registry that Waybill uses, changes
nothing, and prints for each thing what was found; where it is not well, why
that matters and what mends it. Exit code 1 if anything does not work.

It sees what the role in the connection string may see: one with pg_monitor
sees more.`,
		Args: cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := t.resolve(); err != nil {
			return err
		}
		if t.cfg.DatabaseURL == "" {
			return errNoDatabase
		}
		reg, err := t.registryClient()
		if err != nil {
			return err
		}
		defer reg.Close()
		up := ""
		if t.upDir != "" {
			up = upCommand(t.upDir)
		}
		found := doctor.Run(cmd.Context(), doctor.Subject{
			DatabaseURL: t.cfg.DatabaseURL, DataDir: filepath.Join(t.dir, "postgres", "data"),
			Relay:      relay.Config{Mode: relay.Mode(t.cfg.Outbox.Relay), ExactlyOnce: t.cfg.Outbox.ExactlyOnce},
			MaxBacklog: t.cfg.Outbox.MaxBacklog, Up: up,
			Broker: t.brokerConfig(), Topics: orders.Topics(), Registry: reg,
		})
		if err := printFindings(cmd.OutOrStdout(), found, doctor.Unlooked(found), *asJSON); err != nil {
			return err
		}
		if n := count(found, doctor.Fail); n > 0 {
			return errors.New(failedText(n, len(found), doctor.Unlooked(found)))
		}
		return nil
	}
	return cmd
}

func failedText(failed, looked, unlooked int) string {
	text := fmt.Sprintf("%d of %d checks failed", failed, looked)
	if unlooked > 0 {
		text += fmt.Sprintf(", and %d could not be looked at because of that", unlooked)
	}
	return text
}

func count(found []doctor.Finding, v doctor.Verdict) (n int) {
	for _, f := range found {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

func printFindings(out io.Writer, found []doctor.Finding, unlooked int, asJSON bool) error {
	if asJSON {
		return printJSON(out, map[string]any{
			"ok": count(found, doctor.OK), "warn": count(found, doctor.Warn), "fail": count(found, doctor.Fail), "not_looked_at": unlooked, "checks": found,
		})
	}
	width := 0
	for _, f := range found {
		width = max(width, len(f.Check))
	}
	indent := strings.Repeat(" ", len("warn  ")+width)
	for _, f := range found {
		if _, err := fmt.Fprintf(out, "%-4s  %-*s  %s\n", f.Verdict, width, f.Check, oneLine(f.Found)); err != nil {
			return err
		}
		for _, more := range []struct{ name, text string }{{"why ", f.Why}, {"mend", f.Mend}} {
			if more.text == "" {
				continue
			}
			if _, err := fmt.Fprintf(out, "%s  %s  %s\n", indent, more.name, oneLine(more.text)); err != nil {
				return err
			}
		}
	}
	rest := ""
	if unlooked > 0 {
		rest = fmt.Sprintf(", %d not looked at", unlooked)
	}
	_, err := fmt.Fprintf(out, "\n%d ok, %d to watch, %d failed%s\n", count(found, doctor.OK), count(found, doctor.Warn), count(found, doctor.Fail), rest)
	return err
}
