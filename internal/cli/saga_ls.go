package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/saga"
)

func newSagaLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List instances of sagas, the latest first",
		Args:  cobra.NoArgs,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	var f saga.Filter
	var state string
	flags := cmd.Flags()
	flags.StringVar(&f.Saga, "saga", "", "of this saga")
	flags.StringVar(&f.Key, "key", "", "of this key")
	flags.StringVar(&f.Tenant, "tenant", "", "of this tenant")
	flags.StringVar(&state, "state", "", "in this state: "+sagaStates())
	flags.BoolVar(&f.Open, "open", false, "that have not ended")
	flags.BoolVar(&f.Stuck, "stuck", false, "that need an operator, or wait for a step that was asked for")
	flags.StringVar(&f.After, "after", "", "behind the page that ended with this")
	flags.IntVar(&f.Limit, "limit", 100, "at most so many, up to 1000")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f.State = saga.State(state)
		if f.State != "" && !slices.Contains(saga.States(), f.State) {
			return usagef("--state %s: want one of %s", state, sagaStates())
		}
		if f.Limit <= 0 || f.Limit > 1000 {
			return usagef("--limit %d: want 1 to 1000", f.Limit)
		}
		return withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			page, err := saga.List(ctx, db, f)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), page)
			}
			if len(page.Instances) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "no sagas")
				return err
			}
			if err := table(cmd.OutOrStdout(), sagaRows(page.Instances, time.Now())); err != nil || page.Next == "" {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "there are more: --after %s\n", page.Next)
			return err
		})
	}
	return cmd
}

func sagaStates() string {
	var all []string
	for _, s := range saga.States() {
		all = append(all, string(s))
	}
	return strings.Join(all, ", ")
}

func sagaRows(all []saga.Instance, now time.Time) [][]string {
	rows := [][]string{{"SAGA", "KEY", "ROUND", "STATE", "WAITS FOR", "SINCE", "ASKED", "BEGUN", "TENANT"}}
	for _, in := range all {
		waits, since, asked := "-", "-", "-"
		if in.Since != nil {
			waits, since, asked = in.Step+" done", ago(*in.Since), strconv.Itoa(in.Asked)
			if in.Direction == saga.Back {
				waits = in.Step + " undone"
			}
			if in.DueAt != nil && in.DueAt.Before(now) {
				asked += ", due"
			}
		}
		rows = append(rows, []string{
			in.Saga, oneLine(in.Key), strconv.Itoa(in.Round), string(in.State), waits, since, asked,
			in.StartedAt.Local().Format(time.RFC3339), oneLine(in.Tenant),
		})
	}
	return rows
}
