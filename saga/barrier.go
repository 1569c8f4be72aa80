package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// barrier holds asks back until the group has read what its topics held at a
// moment. An observer that was away for an hour would otherwise call every step
// overdue whose event lies unread before it, and services would undo what went
// well.
type barrier struct {
	cl         *kgo.Client
	db         *pgxpool.Pool
	group      string
	topics     []string
	standstill time.Duration
	log        *slog.Logger

	at    time.Time           // what is due by then may be acted on behind the barrier; zero: there is none
	ends  map[partition]int64 // to which the group must have read
	marks map[partition]int64 // how far it had when last asked

	movedAt time.Time // when that last changed, or the barrier began
}

type partition struct {
	topic string
	id    int32
}

func (b *barrier) raised() bool { return !b.at.IsZero() }
func (b *barrier) lower()       { b.at = time.Time{} }

// raise notes where the topics end now, which is after at.
func (b *barrier) raise(ctx context.Context, at time.Time) error {
	adm := kadm.NewClient(b.cl)
	starts, err := adm.ListStartOffsets(ctx, b.topics...)
	if err = listed(starts, err); err != nil {
		return fmt.Errorf("list where topics begin: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, b.topics...)
	if err = listed(ends, err); err != nil {
		return fmt.Errorf("list where topics end: %w", err)
	}
	b.ends = map[partition]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			return
		}
		if start, ok := starts.Lookup(o.Topic, o.Partition); !ok || start.Offset < o.Offset {
			b.ends[partition{o.Topic, o.Partition}] = o.Offset
		}
	})
	b.at = at
	return nil
}

// listed is why offsets are not known. A topic that is not there has no events.
func listed(all kadm.ListedOffsets, err error) error {
	all.Each(func(o kadm.ListedOffset) {
		if o.Err != nil && !errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
			err = errors.Join(err, o.Err)
		}
	})
	return err
}

// reached tells whether the group has read so far. Where it reads nothing on for
// long it will not get there: the last offsets of a topic may be no events but
// marks of transactions, which are never handed out. It then goes by what is
// known.
func (b *barrier) reached(ctx context.Context) (bool, error) {
	rows, err := b.db.Query(ctx, `SELECT topic, partition, next_offset FROM waybill.watermark WHERE group_name = $1`, b.group)
	if err != nil {
		return false, fmt.Errorf("ask how far the group has read: %w", err)
	}
	marks := map[partition]int64{}
	var p partition
	var next int64
	_, err = pgx.ForEachRow(rows, []any{&p.topic, &p.id, &next}, func() error { marks[p] = next; return nil })
	if err != nil {
		return false, fmt.Errorf("ask how far the group has read: %w", err)
	}
	if !maps.Equal(marks, b.marks) {
		b.marks, b.movedAt = marks, time.Now()
	}
	for p, end := range b.ends {
		if marks[p] >= end {
			continue
		}
		if time.Since(b.movedAt) < b.standstill {
			return false, nil
		}
		b.log.WarnContext(ctx, "events seem unread and nothing reads on: steps are called overdue by what is known",
			"group", b.group, "topic", p.topic, "partition", p.id, "read", marks[p], "end", end)
		break
	}
	return true, nil
}
