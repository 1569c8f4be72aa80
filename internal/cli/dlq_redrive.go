package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
)

func newDLQRedrive() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redrive --group GROUP",
		Short: "Have dead keys tried again, each from its head and in order, by that group alone",
		Args:  cobra.NoArgs,
	}
	asJSON, t, d := jsonFlag(cmd), targetFlags(cmd, true), deadFlagsOf(cmd)
	all := cmd.Flags().Bool("all", false, "everything that is dead of the group")
	ask := consumer.Ask{By: operator()}
	cmd.Flags().BoolVar(&ask.DryRun, "dry-run", false, "only count")
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "why, kept with each event")
	wait := cmd.Flags().Duration("wait", 30*time.Second, "how long to follow it; 0: not at all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, narrow, err := d.read()
		switch {
		case err != nil:
			return err
		case f.Group == "":
			return usagef("which group? give --group; only its own handlers run again")
		case !narrow && !*all:
			return usagef("which keys? give --cause, --key, --event or another filter, or --all")
		case narrow && *all:
			return usagef("--all and a filter: want one of them")
		case len(ask.Reason) > maxReason || *wait < 0:
			return usagef("--reason: want at most %d bytes; --wait: 0 or more", maxReason)
		}
		return withDatabaseFor(cmd, t, *wait, func(ctx context.Context, db *pgxpool.Pool) error {
			out := redriven{}
			if out.Redriven, err = consumer.Redrive(ctx, db, f, ask); err != nil {
				return err
			}
			if out.Keys == 0 {
				if err := unknownCause(ctx, db, f); err != nil {
					return err
				}
			}
			if !*asJSON {
				if err := out.print(cmd, ask.DryRun); err != nil {
					return err
				}
			}
			if out.Run != "" && *wait > 0 {
				if out.Progress, err = followRedrive(ctx, cmd, db, out.Run, *wait, *asJSON); err != nil {
					return err
				}
			}
			if *asJSON {
				if err := printJSON(cmd.OutOrStdout(), out); err != nil {
					return err
				}
			}
			if p := out.Progress; p != nil && p.DeadAgain > 0 {
				return fmt.Errorf("%s died again: waybill dlq ls --group %s", plural(p.DeadAgain, "key"), f.Group)
			}
			return nil
		})
	}
	return cmd
}

type redriven struct {
	consumer.Redriven
	Progress *consumer.RedriveProgress `json:"progress,omitempty"`
}

func (r redriven) print(cmd *cobra.Command, dry bool) error {
	are := "are"
	if r.Keys == 1 {
		are = "is"
	}
	text := fmt.Sprintf("%s %s to be tried again", plural(r.Keys, "key"), are)
	switch {
	case dry:
		text = plural(r.Keys, "key") + " would be tried again"
	case r.Keys == 0:
		text = "nothing to try again: what is chosen is not dead, or is to be tried again already"
	}
	if r.More {
		text += "; there are more, ask again"
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

const followEvery = 250 * time.Millisecond

// followRedrive shows how far a run is, whenever that changes, until it is
// through or the time is over. A group without a running member does nothing.
func followRedrive(ctx context.Context, cmd *cobra.Command, db *pgxpool.Pool, run string, most time.Duration, silent bool) (*consumer.RedriveProgress, error) {
	limit, tick := time.After(most), time.NewTicker(followEvery)
	defer tick.Stop()
	var told consumer.RedriveProgress
	for {
		p, err := consumer.FindRedrive(ctx, db, run)
		if err != nil {
			return nil, err
		}
		if p != told && !silent {
			told = p
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d of %s free, %d draining, %d waiting, %d dead again\n", p.Freed, plural(p.Keys, "key"), p.Draining, p.Waiting, p.DeadAgain)
			if err != nil {
				return nil, err
			}
		}
		if p.Done() {
			return &p, nil
		}
		select {
		case <-ctx.Done():
			return &p, ctx.Err()
		case <-limit:
			if !silent {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "it goes on by itself while a member of the group runs (waybill groups)")
			}
			return &p, err
		case <-tick.C:
		}
	}
}
