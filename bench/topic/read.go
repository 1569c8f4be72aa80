package topic

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

// Size is how many records a topic was given, markers of transactions
// included.
func Size(ctx context.Context, cl *kgo.Client, name string) (n int64, err error) {
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, name)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the end of topic %s: %w", name, err)
	}
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n, nil
}

// Read calls saw with every record of a topic up to the end it has now.
// Records of transactions that did not commit are left out.
func Read(ctx context.Context, cfg broker.Config, name string, saw func(*kgo.Record) error) error {
	cl, err := consume(cfg, name)
	if err != nil {
		return err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, name)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("ask for the end of topic %s: %w", name, err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		err := each(ctx, cl, func(rec *kgo.Record) error {
			if end, ok := left[rec.Partition]; ok && rec.Offset+1 >= end {
				delete(left, rec.Partition)
			}
			if rec.Attrs.IsControl() {
				return nil
			}
			return saw(rec)
		})
		if err != nil {
			return fmt.Errorf("read topic %s: %w", name, err)
		}
	}
	return nil
}

// follow calls saw with every record of a topic until ctx ends, which is no
// error.
func follow(ctx context.Context, cl *kgo.Client, name string, saw func(*kgo.Record) error) error {
	for ctx.Err() == nil {
		err := each(ctx, cl, func(rec *kgo.Record) error {
			if rec.Attrs.IsControl() {
				return nil
			}
			return saw(rec)
		})
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("follow topic %s: %w", name, err)
		}
	}
	return nil
}

func consume(cfg broker.Config, name string) (*kgo.Client, error) {
	return cfg.Client(
		kgo.ConsumeTopics(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // a partition may end in one
	)
}

func each(ctx context.Context, cl *kgo.Client, saw func(*kgo.Record) error) error {
	fetches := cl.PollFetches(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	var errs []error
	fetches.EachError(func(_ string, _ int32, err error) { errs = append(errs, err) })
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	var err error
	fetches.EachRecord(func(rec *kgo.Record) {
		if err == nil {
			err = saw(rec)
		}
	})
	return err
}
