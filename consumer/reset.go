package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrRunning is a reset of what members of the group work on.
var ErrRunning = errors.New("the group has members at work")

// To is where a reset moves a group; make it with [ToBeginning], [ToNow],
// [ToOffset] or [ToTime].
type To struct {
	what   toWhat
	offset int64
	at     time.Time
}

type toWhat int

const (
	toBeginning toWhat = iota
	toNow
	toOffset
	toTime
)

// ToBeginning is the oldest record kept.
func ToBeginning() To { return To{} }

// ToNow is the end: what was not handled is passed over.
func ToNow() To { return To{what: toNow} }

// ToOffset is the record at offset of each partition, which must lie in its
// log.
func ToOffset(offset int64) To { return To{what: toOffset, offset: offset} }

// ToTime is the first record whose timestamp, of its publishing, is not before
// t; the end if there is none.
func ToTime(t time.Time) To { return To{what: toTime, at: t} }

// ResetOptions say how much is reset. The zero value is all of it.
type ResetOptions struct {
	// Stopped resets only partitions that are stopped; see PartitionState.
	// Members may be running: they do nothing with those.
	Stopped bool
	// KeepInbox leaves the record of what was handled: it is read again and
	// passed over. This is for a log that was restored or copied.
	KeepInbox bool
	DryRun    bool // say what would be done
}

// Moved is a partition that was reset.
type Moved struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      *int64 `json:"from"` // nil: there was no position
	To        int64  `json:"to"`
	Again     int64  `json:"again"`     // offsets that were read and will be again
	Passed    int64  `json:"passed"`    // offsets that were not read and will not be
	Forgotten int64  `json:"forgotten"` // events of them that are not known as handled any more; with DryRun not counted
	Unparked  int64  `json:"unparked"`  // parked events that were taken away since they are read again

	place
	b     bounds
	other bool // the log is another one than was read
}

// Reset moves a group on a topic, or with an empty topic on all it has read:
// position and inbox together and in one transaction, so that what is read
// again is handled again. Events that are parked and read again are parked no
// more. It reads what lies between, to know the events.
//
// It fails with ErrRunning while members of the group are at work. One that
// starts meanwhile, or that the broker has lost sight of, is fenced off.
func Reset(ctx context.Context, deps Deps, group, topic string, to To, o ResetOptions) ([]Moved, error) {
	moved, err := reset(ctx, deps, group, topic, to, o)
	if err != nil {
		return nil, fmt.Errorf("reset group %s: %w", group, err)
	}
	return moved, nil
}

func reset(ctx context.Context, deps Deps, group, topic string, to To, o ResetOptions) ([]Moved, error) {
	cl, err := deps.Client()
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	defer cl.Close()
	r := &resetting{group: group, deps: deps, cl: cl, opts: o}
	if err := r.plan(ctx, topic, to); err != nil || o.DryRun {
		return r.moved, err
	}
	err = pgx.BeginFunc(ctx, deps.DB, func(tx pgx.Tx) error {
		if err := r.seize(ctx, tx); err != nil {
			return err
		}
		if err := r.forget(ctx, tx); err != nil {
			return err
		}
		return r.move(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	r.tell(ctx)
	return r.moved, nil
}

// resetting is a reset under way.
type resetting struct {
	group string
	deps  Deps
	cl    *kgo.Client
	opts  ResetOptions
	moved []Moved
}

// seize takes the partitions over. Whoever works on one of them all the same
// is fenced, and waited for where it saves or parks. The numbers of keys that were
// counted before are trusted no more.
func (r *resetting) seize(ctx context.Context, tx pgx.Tx) error {
	for _, m := range r.moved {
		_, err := tx.Exec(ctx, `INSERT INTO waybill.owner AS o (group_name, topic, partition, epoch, member)
			VALUES ($1, $2, $3, 1, 'reset') ON CONFLICT (group_name, topic, partition) DO UPDATE
			SET epoch = o.epoch + 1, member = excluded.member, since = now(), stopped = '', stalled = ''`, r.group, m.Topic, m.Partition)
		if err != nil {
			return fmt.Errorf("take %s/%d over: %w", m.Topic, m.Partition, err)
		}
	}
	return nil
}

// move writes the positions. Parked events are taken away if they come again;
// those of another log do not.
func (r *resetting) move(ctx context.Context, tx pgx.Tx) error {
	for i := range r.moved {
		m := &r.moved[i]
		_, err := tx.Exec(ctx, `INSERT INTO waybill.watermark
				(group_name, topic, partition, topic_id, leader_epoch, next_offset, reached)
			VALUES ($1, $2, $3, $4, -1, $5, $5)
			ON CONFLICT (group_name, topic, partition) DO UPDATE SET topic_id = excluded.topic_id,
				leader_epoch = -1, next_offset = excluded.next_offset, reached = excluded.reached, updated_at = now()`,
			r.group, m.Topic, m.Partition, m.b.topicID, m.To)
		if err != nil {
			return fmt.Errorf("move the position of %s/%d: %w", m.Topic, m.Partition, err)
		}
		if r.opts.KeepInbox || m.other || !m.back() {
			continue
		}
		tag, err := tx.Exec(ctx, `DELETE FROM waybill.parked
			WHERE group_name = $1 AND topic = $2 AND partition = $3 AND "offset" >= $4`, r.group, m.Topic, m.Partition, m.To)
		if err != nil {
			return fmt.Errorf("take parked events of %s/%d away: %w", m.Topic, m.Partition, err)
		}
		m.Unparked = tag.RowsAffected()
	}
	return nil
}

// back tells whether anything is read again.
func (m Moved) back() bool { return m.other || m.From != nil && m.To < *m.From }

func (m Moved) String() string { return fmt.Sprintf("%s/%d", m.Topic, m.Partition) }
