package cli

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/consumer"
)

func newDLQ() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "Look at dead letters: events that a group gave up; have them tried again, or drop them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDLQLs(), newDLQShow(), newDLQRedrive(), newDLQDrop(), newDLQLog())
	return cmd
}

// deadFlags are the flags that choose dead letters.
type deadFlags struct {
	filter       consumer.DeadFilter
	key          string
	since, until string
	cmd          *cobra.Command
}

func deadFlagsOf(cmd *cobra.Command) *deadFlags {
	d := &deadFlags{cmd: cmd}
	f := cmd.Flags()
	f.StringVar(&d.filter.Group, "group", "", "of this consumer group")
	f.StringVar(&d.filter.Topic, "topic", "", "of this topic")
	f.StringVar(&d.filter.Type, "type", "", "of this type of event")
	f.StringVar(&d.filter.Tenant, "tenant", "", "of this tenant")
	f.StringVar(&d.key, "key", "", "of this key")
	f.StringVar(&d.filter.Event, "event", "", "the event with this id")
	f.StringVar(&d.filter.Cause, "cause", "", "of this cause, by its id in `waybill dlq ls`")
	f.StringVar(&d.since, "since", "", "dead since then: 24h ago, or a time such as 2026-01-31T08:00:00Z")
	f.StringVar(&d.until, "until", "", "dead before then, likewise")
	f.BoolVar(&d.filter.Parked, "parked", false, "also what is still being retried")
	return d
}

// read gives the filter, and whether it names more than a group.
func (d *deadFlags) read() (f consumer.DeadFilter, narrow bool, err error) {
	f = d.filter
	if d.cmd.Flags().Changed("key") {
		f.Key = &d.key
	}
	if f.Event != "" {
		if _, err := uuid.Parse(f.Event); err != nil {
			return f, false, usagef("--event %q: want an id, as `waybill dlq ls --keys` shows them", f.Event)
		}
	}
	if f.Since, err = moment("--since", d.since); err != nil {
		return f, false, err
	}
	if f.Until, err = moment("--until", d.until); err != nil {
		return f, false, err
	}
	narrow = f.Key != nil || f.Topic+f.Type+f.Tenant+f.Event+f.Cause+d.since+d.until != ""
	return f, narrow, nil
}

// moment is a time, or so long ago.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usagef("%s %q: want how long ago, such as 24h, or a time such as 2026-01-31T08:00:00Z", flag, text)
	}
	return t, nil
}

// withDatabaseFor is withDatabase for what may take longer than a question.
func withDatabaseFor(cmd *cobra.Command, t *target, most time.Duration, do func(context.Context, *pgxpool.Pool) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), most+askTimeout)
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
