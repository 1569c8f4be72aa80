package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/logistica/faults"
)

func newFault() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Break the delivery product on purpose, to see it compensate and mend",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFaultLs(), newFaultSet(), newFaultClear())
	return cmd
}

// withFaults is withDatabase for faults, whose refusals are usage errors.
func withFaults(cmd *cobra.Command, t *target, do func(context.Context, *faults.Flags) error) error {
	err := withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
		return do(ctx, faults.New(db, faults.Config{Logger: quiet()}))
	})
	var unknown *faults.UnknownError
	var invalid *faults.InvalidError
	if errors.As(err, &unknown) || errors.As(err, &invalid) {
		return usageError{err}
	}
	return err
}

func newFaultLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the faults there are, and how they are set",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withFaults(cmd, t, func(ctx context.Context, f *faults.Flags) error {
			all, err := f.List(ctx)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			return table(cmd.OutOrStdout(), faultRows(all))
		})
	}
	return cmd
}

func faultRows(all []faults.Setting) [][]string {
	rows := [][]string{{"FAULT", "VALUE", "ENDS", "SET", "BY", "WHAT IT DOES"}}
	for _, s := range all {
		ends, set := "-", "-"
		if s.Value > 0 {
			ends = "when cleared"
		}
		if s.Until != nil {
			ends = "in " + duration(max(0, time.Until(*s.Until)).Round(time.Second))
		}
		if s.SetAt != nil {
			set = ago(*s.SetAt)
		}
		rows = append(rows, []string{s.Name, faultValue(s), ends, set, oneLine(or(s.SetBy, "-")), s.Does})
	}
	return rows
}

// faultValue is a value with its unit.
func faultValue(s faults.Setting) string {
	if s.Value == 0 {
		return "off"
	}
	switch s.Unit {
	case faults.Switch:
		return "on"
	case faults.Percent, faults.Millis:
		return fmt.Sprintf("%d %s", s.Value, s.Unit)
	case faults.Events:
		if s.Left != nil && *s.Left < s.Value {
			return fmt.Sprintf("%s, %d to come", plural(s.Value, "event"), *s.Left)
		}
		return plural(s.Value, "event")
	}
	return strconv.FormatInt(s.Value, 10)
}
