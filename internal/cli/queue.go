package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/queue"
)

func newQueue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Point-to-point queues: each message to one worker, until it says that it is done",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newQueueCreate(), newQueueLs(), newQueueSend(), newQueueReceive(), newQueueAck(), newQueueNack(), newQueueExtend(),
		newQueueStats(), newQueueDead(), newQueueRedrive(), newQueuePurge(), newQueueRm(),
	)
	return cmd
}

// queueCommand is what the commands share: whose queue, on which database.
type queueCommand struct {
	*target
	tenant *string
	json   *bool
}

func queueFlags(cmd *cobra.Command) queueCommand {
	return queueCommand{
		target: targetFlags(cmd, true), json: jsonFlag(cmd),
		tenant: cmd.Flags().String("tenant", "", "whose queue it is, by the tenant's id; the system's own if left out"),
	}
}

// ask runs do on the database, with the tables there.
func (c queueCommand) ask(ctx context.Context, do func(context.Context, *pgxpool.Pool) error) error {
	return queueError(c.withDatabase(ctx, do))
}

// withQueue runs do on the queue that the arguments name.
func (c queueCommand) withQueue(ctx context.Context, name string, do func(context.Context, *pgxpool.Pool, *queue.Queue) error) error {
	return c.ask(ctx, func(ctx context.Context, db *pgxpool.Pool) error {
		return do(ctx, db, queue.New(db, queue.Config{Tenant: *c.tenant, Name: name}))
	})
}

// queueError makes what the caller got wrong a usage error.
func queueError(err error) error {
	if errors.Is(err, queue.ErrInvalid) {
		return usageError{err}
	}
	if err != nil {
		return noTables(err)
	}
	return nil
}

func newQueueCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a queue, or give one that is there new settings",
		Example: "  waybill queue create mail --lease 1m --max-deliveries 5",
		Args:    cobra.ExactArgs(1),
	}
	c := queueFlags(cmd)
	var s queue.Settings
	f := cmd.Flags()
	f.DurationVar(&s.Lease, "lease", 30*time.Second, "how long a worker has a message")
	f.IntVar(&s.MaxDeliveries, "max-deliveries", 10, "deliveries before a message is dead")
	f.DurationVar(&s.TTL, "ttl", 0, "how long a message may wait; 0s for ever")
	f.Int64Var(&s.MaxLength, "max-length", 1_000_000, "messages past which senders are refused")
	f.DurationVar(&s.Dedupe, "dedupe", 10*time.Minute, "how long a dedupe id is remembered")
	f.DurationVar(&s.KeepDead, "keep-dead", 30*24*time.Hour, "how long dead letters are kept")
	f.StringVar(&s.DeadLetter, "dead-letter", "", "another queue of the tenant for the dead; the queue's own dead letters if left out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := notZero(cmd, "lease", "max-deliveries", "max-length", "dedupe", "keep-dead"); err != nil {
			return err
		}
		return c.ask(cmd.Context(), func(ctx context.Context, db *pgxpool.Pool) error {
			had, err := queue.List(ctx, db, *c.tenant)
			if err != nil {
				return err
			}
			if err := queue.Declare(ctx, db, *c.tenant, args[0], s); err != nil {
				return err
			}
			there := slices.ContainsFunc(had, func(i queue.Info) bool { return i.Name == args[0] })
			if *c.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"tenant": *c.tenant, "name": args[0], "created": !there})
			}
			what := "is created"
			if there {
				what = "was there and has these settings now"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "queue %s %s: waybill queue ls\n", args[0], what)
			return err
		})
	}
	return cmd
}

// queueInfo is a queue as it is printed.
type queueInfo struct {
	Tenant        string    `json:"tenant"`
	Name          string    `json:"name"`
	CreatedAt     time.Time `json:"created_at"`
	LeaseMS       int64     `json:"lease_ms"`
	MaxDeliveries int       `json:"max_deliveries"`
	TTLMS         int64     `json:"ttl_ms"` // 0: for ever
	MaxLength     int64     `json:"max_length"`
	DedupeMS      int64     `json:"dedupe_ms"`
	KeepDeadMS    int64     `json:"keep_dead_ms"`
	DeadLetter    string    `json:"dead_letter,omitempty"`
}

func newQueueLs() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List queues and their settings", Args: cobra.NoArgs}
	c := queueFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.ask(cmd.Context(), func(ctx context.Context, db *pgxpool.Pool) error {
			all, err := queue.List(ctx, db, *c.tenant)
			if err != nil {
				return err
			}
			out, rows := []queueInfo{}, [][]string{{"QUEUE", "LEASE", "DELIVERIES", "TTL", "MAX LENGTH", "DEDUPE", "DEAD LETTERS"}}
			for _, i := range all {
				out = append(out, queueInfo{
					i.Tenant, i.Name, i.CreatedAt, i.Lease.Milliseconds(), i.MaxDeliveries, i.TTL.Milliseconds(), i.MaxLength,
					i.Dedupe.Milliseconds(), i.KeepDead.Milliseconds(), i.DeadLetter,
				})
				ttl := "for ever"
				if i.TTL > 0 {
					ttl = duration(i.TTL)
				}
				rows = append(rows, []string{
					i.Name, duration(i.Lease), fmt.Sprint(i.MaxDeliveries), ttl, fmt.Sprint(i.MaxLength), duration(i.Dedupe),
					or(i.DeadLetter, "kept "+duration(i.KeepDead)),
				})
			}
			switch {
			case *c.json:
				return printJSON(cmd.OutOrStdout(), out)
			case len(all) == 0:
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "no queues; make one: waybill queue create NAME")
				return err
			}
			return table(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

func newQueueStats() *cobra.Command {
	cmd := &cobra.Command{Use: "stats [QUEUE]", Short: "Count what is in the queues", Args: cobra.MaximumNArgs(1)}
	c := queueFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.ask(cmd.Context(), func(ctx context.Context, db *pgxpool.Pool) error {
			var all []queue.Stats
			var err error
			if len(args) == 1 {
				var one queue.Stats
				one, err = queue.New(db, queue.Config{Tenant: *c.tenant, Name: args[0]}).Stats(ctx)
				all = append(all, one)
			} else {
				all, err = queue.ReadStats(ctx, db, *c.tenant)
			}
			if err != nil {
				return err
			}
			if *c.json {
				return printJSON(cmd.OutOrStdout(), all)
			}
			rows := [][]string{{"QUEUE", "READY", "IN FLIGHT", "DELAYED", "WAITING", "REDELIVERED", "DEAD", "OLDEST READY"}}
			for _, s := range all {
				oldest := "none"
				if s.Oldest != nil {
					oldest = ago(*s.Oldest)
				}
				rows = append(rows, []string{
					s.Name, fmt.Sprint(s.Ready), fmt.Sprint(s.InFlight), fmt.Sprint(s.Delayed), fmt.Sprint(s.Waiting),
					fmt.Sprint(s.Redelivered), fmt.Sprint(s.Dead), oldest,
				})
			}
			return table(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

func newQueuePurge() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Remove all messages, also those with workers; dead letters stay",
		Args:  cobra.ExactArgs(1),
	}
	c := queueFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withQueue(cmd.Context(), args[0], func(ctx context.Context, _ *pgxpool.Pool, q *queue.Queue) error {
			n, err := q.Purge(ctx)
			return c.counted(cmd, n, "removed", err)
		})
	}
	return cmd
}

// counted prints how many messages something happened to.
func (c queueCommand) counted(cmd *cobra.Command, n int64, what string, err error) error {
	switch {
	case err != nil:
		return err
	case *c.json:
		return printJSON(cmd.OutOrStdout(), map[string]int64{"count": n})
	}
	noun := "messages"
	if n == 1 {
		noun = "message"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d %s %s\n", n, noun, what)
	return err
}
