package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/registry"
)

func newSubscribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subscribe TOPIC",
		Short: "Print messages as they come, one JSON object a line",
		Long: `Prints each message of a topic as one line of JSON, decoded by the schema it
was written with. With --group, several subscribers share the topic and a later
one goes on where they stopped. A new group begins with what comes from then
on, or with the oldest record by --from-beginning.`,
		Args: cobra.ExactArgs(1),
	}
	t := targetFlags(cmd, false)
	f := cmd.Flags()
	begin := f.Bool("from-beginning", false, "begin with the oldest record instead of with what comes")
	group := f.String("group", "", "consumer group to share the topic in")
	limit := f.Int("count", 0, "stop after so many messages; 0: do not stop")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *limit < 0 {
			return usagef("--count %d: want 0 or more", *limit)
		}
		start := kgo.NewOffset().AtEnd()
		// In a group a partition without a commit is one that nobody came to
		// yet: its records are still to be shown.
		if *begin || *group != "" {
			start = kgo.NewOffset().AtStart()
		}
		opts := []kgo.Opt{kgo.ConsumeTopics(args[0]), kgo.ConsumeResetOffset(start)}
		if *group != "" {
			opts = append(opts, kgo.ConsumerGroup(*group), kgo.AutoCommitMarks())
			if !*begin {
				if err := t.beginNow(cmd.Context(), *group, args[0]); err != nil {
					return err
				}
			}
		}
		r, err := openReader(cmd.Context(), t, args[0], opts...)
		if err != nil {
			return err
		}
		defer r.close(*group != "")
		return r.follow(cmd.Context(), *limit, func(rec *kgo.Record) error {
			_, message, err := r.decoder.DecodeAny(cmd.Context(), rec.Value)
			if err != nil {
				if errors.Is(err, registry.ErrUnavailable) {
					return registryHint(err)
				}
				_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s[%d]@%d: %v\n", rec.Topic, rec.Partition, rec.Offset, err)
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", message)
			return err
		})
	}
	return cmd
}

// beginNow commits the topic's ends for a group that has no commit in it, so
// that "from now on" means the same moment for every partition and for every
// later member.
func (t *target) beginNow(ctx context.Context, group, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := t.resolve(); err != nil {
		return err
	}
	cl, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	committed, err := adm.FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("offsets of group %s: %w", group, err)
	}
	if len(committed[topic]) > 0 {
		return nil
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil // a topic that is not there is told by the reader
	}
	if err := adm.CommitAllOffsets(ctx, group, ends.Offsets()); err != nil {
		return fmt.Errorf("begin group %s at the end of %s: %w", group, topic, err)
	}
	return nil
}

// reader follows one topic for a command.
type reader struct {
	client  *kgo.Client
	decoder *registry.Decoder
}

// openReader connects and makes sure that the topic is there: one that is not
// would be waited for in silence.
func openReader(ctx context.Context, t *target, topic string, opts ...kgo.Opt) (*reader, error) {
	if err := t.resolve(); err != nil {
		return nil, err
	}
	reg, err := t.registryClient()
	if err != nil {
		return nil, usageError{err}
	}
	// One empty partition that is asked first would keep the others waiting for
	// as long as a broker holds a fetch open, five seconds by default.
	cl, err := t.client(ctx, append(opts, kgo.FetchMinBytes(1), kgo.FetchMaxWait(250*time.Millisecond))...)
	if err != nil {
		return nil, err
	}
	found, err := broker.ListTopics(ctx, cl)
	if err == nil {
		err = hasTopic(found, topic)
	}
	if err != nil {
		cl.Close()
		return nil, err
	}
	return &reader{client: cl, decoder: registry.NewDecoder(reg)}, nil
}

// hasTopic refuses a name that is not in topics. One that was asked for by name
// is, with the broker's error.
func hasTopic(topics []broker.TopicInfo, name string) error {
	for _, t := range topics {
		if t.Name == name && t.Partitions > 0 {
			return nil
		}
	}
	return fmt.Errorf("topic %s does not exist; see waybill topics, or create it: waybill topics create %s", name, name)
}

// follow gives each record to show until ctx ends, which is no failure, or
// limit records were shown.
func (r *reader) follow(ctx context.Context, limit int, show func(*kgo.Record) error) error {
	err := r.read(ctx, limit, show)
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

func (r *reader) read(ctx context.Context, limit int, show func(*kgo.Record) error) error {
	shown := 0
	for {
		fetches := r.client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return fmt.Errorf("read %s: %w", errs[0].Topic, errs[0].Err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			rec := it.Next()
			if err := show(rec); err != nil {
				return err
			}
			r.client.MarkCommitRecords(rec)
			if shown++; shown == limit {
				return nil
			}
		}
	}
}

// close leaves; in a group what was shown is committed first.
func (r *reader) close(group bool) {
	if group {
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		defer cancel()
		_ = r.client.CommitMarkedOffsets(ctx) // the next subscriber shows some again
	}
	r.client.Close()
}
