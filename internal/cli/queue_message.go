package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/queue"
)

func newQueueSend() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send QUEUE [BODY]",
		Short: "Send messages: the argument, or one a line from standard input",
		Long: `Sends one message, or one a line from standard input, in batches that are taken
whole or not at all. A body that is JSON is marked so.`,
		Example: `  waybill queue send mail '{"to":"ana"}' --group ana --delay 10s`,
		Args:    cobra.RangeArgs(1, 2),
	}
	c := queueFlags(cmd)
	var m queue.Message
	f := cmd.Flags()
	f.IntVar(&m.Priority, "priority", 0, "0 to 9, higher first")
	f.StringVar(&m.Group, "group", "", "messages of a group are delivered one at a time, in order")
	f.StringVar(&m.DedupeID, "dedupe-id", "", "a second message with it is not taken while it is remembered")
	f.DurationVar(&m.Delay, "delay", 0, "before it may be delivered")
	f.DurationVar(&m.TTL, "ttl", 0, "how long it may wait, instead of the queue's")
	headers := f.StringArray("header", nil, "NAME=VALUE; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, h := range *headers {
			name, v, ok := strings.Cut(h, "=")
			if !ok || name == "" {
				return usagef("--header %q: want NAME=VALUE", h)
			}
			if m.Headers == nil {
				m.Headers = map[string]string{}
			}
			m.Headers[name] = v
		}
		next, err := input(cmd, args[1:])
		if err != nil {
			return err
		}
		return c.withQueue(cmd.Context(), args[0], func(ctx context.Context, db *pgxpool.Pool, q *queue.Queue) error {
			return c.sendAll(ctx, cmd.OutOrStdout(), db, q, m, next)
		})
	}
	return cmd
}

// sendAll sends a batch at a time. What a failure leaves unsent begins with the
// message it names.
func (c queueCommand) sendAll(ctx context.Context, out io.Writer, db *pgxpool.Pool, q *queue.Queue, like queue.Message, next messages) error {
	const batch = 200
	all := []queueSent{}
	for done := false; !done; {
		var part []queue.Message
		for len(part) < batch && !done {
			body, err := next()
			if errors.Is(err, io.EOF) {
				done = true
				break
			}
			if err != nil {
				return fmt.Errorf("message %d: %w", len(all)+len(part)+1, err)
			}
			m := like
			m.Body = body
			if json.Valid(body) {
				m.ContentType = queue.ContentTypeJSON
			}
			part = append(part, m)
		}
		sent, err := q.Send(ctx, db, part...)
		if err != nil {
			return fmt.Errorf("messages from %d on are not sent: %w", len(all)+1, err)
		}
		for _, s := range sent {
			all = append(all, queueSent(s))
			if !*c.json {
				if err := printSent(out, s); err != nil {
					return err
				}
			}
		}
	}
	if *c.json {
		return printJSON(out, all)
	}
	return nil
}

type queueSent struct {
	ID        uuid.UUID `json:"id"`
	Duplicate bool      `json:"duplicate"`
}

func printSent(out io.Writer, s queue.Sent) error {
	note := ""
	if s.Duplicate {
		note = "  sent before, not taken again"
	}
	_, err := fmt.Fprintf(out, "%s%s\n", s.ID, note)
	return err
}

// queueDelivery is a delivery as it is printed.
type queueDelivery struct {
	ID          uuid.UUID         `json:"id"`
	Receipt     string            `json:"receipt"`
	Deliveries  int               `json:"deliveries"`
	LeaseUntil  time.Time         `json:"lease_until"`
	SentAt      time.Time         `json:"sent_at"`
	Priority    int               `json:"priority"`
	Group       string            `json:"group,omitempty"`
	DedupeID    string            `json:"dedupe_id,omitempty"`
	ContentType string            `json:"content_type"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        any               `json:"body"` // JSON, or bytes in base64
}

func bodyOf(body []byte, kind string) any {
	if kind == queue.ContentTypeJSON && json.Valid(body) {
		return json.RawMessage(body)
	}
	return body
}

func newQueueReceive() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "receive QUEUE",
		Short: "Take messages for the time of a lease; then ack, nack or extend their receipts",
		Args:  cobra.ExactArgs(1),
	}
	c := queueFlags(cmd)
	var opts queue.ReceiveOptions
	f := cmd.Flags()
	f.IntVar(&opts.Max, "max", 1, "at most so many messages")
	f.DurationVar(&opts.Wait, "wait", 0, "for the first one, at most 10s")
	f.DurationVar(&opts.Lease, "lease", 0, "how long you have them; the queue's if left out")
	ack := f.Bool("ack", false, "say that they are done once they are printed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := notZero(cmd, "max", "lease"); err != nil {
			return err
		}
		if opts.Wait < 0 || opts.Wait > 10*time.Second {
			return usagef("--wait %s: want 0s to 10s", opts.Wait)
		}
		return c.withQueue(cmd.Context(), args[0], func(ctx context.Context, db *pgxpool.Pool, q *queue.Queue) error {
			got, err := q.Receive(ctx, opts)
			if err != nil {
				return err
			}
			if err := c.printDeliveries(cmd.OutOrStdout(), got); err != nil || !*ack {
				return err
			}
			receipts := make([]string, len(got))
			for i, d := range got {
				receipts[i] = d.Receipt
			}
			return q.Ack(ctx, db, receipts...)
		})
	}
	return cmd
}

func (c queueCommand) printDeliveries(out io.Writer, got []queue.Delivery) error {
	if *c.json {
		all := []queueDelivery{}
		for _, d := range got {
			all = append(all, queueDelivery{
				d.ID, d.Receipt, d.Deliveries, d.LeaseUntil, d.SentAt, d.Priority, d.Group, d.DedupeID, d.ContentType, d.Headers, bodyOf(d.Body, d.ContentType),
			})
		}
		return printJSON(out, all)
	}
	if len(got) == 0 {
		_, err := fmt.Fprintln(out, "no message")
		return err
	}
	rows := [][]string{{"RECEIPT", "DELIVERY", "GROUP", "BODY"}}
	for _, d := range got {
		rows = append(rows, []string{d.Receipt, fmt.Sprint(d.Deliveries), oneLine(or(d.Group, "none")), oneLine(string(d.Body))})
	}
	return table(out, rows)
}

func newQueueAck() *cobra.Command {
	cmd := &cobra.Command{Use: "ack QUEUE RECEIPT...", Short: "Say that messages are done", Args: cobra.MinimumNArgs(2)}
	c := queueFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withQueue(cmd.Context(), args[0], func(ctx context.Context, db *pgxpool.Pool, q *queue.Queue) error {
			return c.counted(cmd, int64(len(args)-1), "done", q.Ack(ctx, db, args[1:]...))
		})
	}
	return cmd
}

func newQueueNack() *cobra.Command {
	cmd := &cobra.Command{Use: "nack QUEUE RECEIPT...", Short: "Give messages back, to be delivered again", Args: cobra.MinimumNArgs(2)}
	c := queueFlags(cmd)
	delay := cmd.Flags().Duration("delay", 0, "before they may be delivered again")
	reason := cmd.Flags().String("reason", "", "kept for whoever looks at the dead letters")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withQueue(cmd.Context(), args[0], func(ctx context.Context, db *pgxpool.Pool, q *queue.Queue) error {
			return c.counted(cmd, int64(len(args)-1), "given back", q.Nack(ctx, db, *delay, *reason, args[1:]...))
		})
	}
	return cmd
}

func newQueueExtend() *cobra.Command {
	cmd := &cobra.Command{Use: "extend QUEUE RECEIPT...", Short: "Keep messages for longer", Args: cobra.MinimumNArgs(2)}
	c := queueFlags(cmd)
	lease := cmd.Flags().Duration("lease", 30*time.Second, "from now")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.withQueue(cmd.Context(), args[0], func(ctx context.Context, db *pgxpool.Pool, q *queue.Queue) error {
			return c.counted(cmd, int64(len(args)-1), "extended", q.Extend(ctx, db, *lease, args[1:]...))
		})
	}
	return cmd
}
