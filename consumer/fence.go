package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errFenced says that the partition has been taken over since it was assigned
// to us.
var errFenced = errors.New("another member has taken the partition over")

// fencedError names partitions that were taken over; it is an errFenced.
type fencedError struct{ lost []*partition }

func (*fencedError) Error() string { return errFenced.Error() }
func (*fencedError) Unwrap() error { return errFenced }

// takeOver gives each of places a new owner epoch, which is ours. From then on
// no assignment before it begins anything: see claimSQL and behindFence.
func (s *session) takeOver(ctx context.Context, places []place) (map[place]int64, error) {
	topics, ids := columns(places)
	member, _ := s.cl.GroupMetadata()
	// Ordered, so that two members that take over the same do not deadlock.
	rows, err := s.deps.DB.Query(ctx, `INSERT INTO waybill.owner AS o (group_name, topic, partition, epoch, member, inbox_keep, counted_since, counted_epoch)
		SELECT $1, topic, partition, 1, $4, $5::interval, CASE WHEN $6 THEN 'epoch'::timestamptz END, CASE WHEN $6 THEN 1 ELSE 0 END FROM unnest($2::text[], $3::int[]) AS v(topic, partition)
		ORDER BY topic, partition
		ON CONFLICT (group_name, topic, partition) DO UPDATE
			SET epoch = o.epoch + 1, member = excluded.member, since = now(), stopped = '', stalled = '',
				inbox_keep = excluded.inbox_keep,
				counted_since = CASE WHEN NOT $6 THEN NULL WHEN o.counted_epoch = o.epoch THEN o.counted_since ELSE now() END,
				counted_epoch = CASE WHEN $6 THEN o.epoch + 1 ELSE 0 END
		RETURNING topic, partition, epoch`, s.cfg.Group, topics, ids, storable(member), s.cfg.InboxKeep, s.cfg.Gaps != IgnoreGaps)
	if err != nil {
		return nil, fmt.Errorf("take partitions over: %w", err)
	}
	epochs := make(map[place]int64, len(places))
	var at place
	var epoch int64
	_, err = pgx.ForEachRow(rows, []any{&at.topic, &at.id, &epoch}, func() error {
		epochs[at] = epoch
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take partitions over: %w", err)
	}
	return epochs, nil
}

// behindFence runs f in a transaction that commits only while p is ours: the
// lock on the owner's row makes whoever takes over wait for it, and then see
// all of it. A claim needs no such lock; what is parked and saved does, for
// nothing else tells the next owner to wait.
func (s *session) behindFence(ctx context.Context, p *partition, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.deps.DB, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `SELECT FROM waybill.owner
			WHERE group_name = $1 AND topic = $2 AND partition = $3 AND epoch = $4 FOR SHARE`,
			s.cfg.Group, p.topic, p.id, p.owner)
		if err != nil {
			return fmt.Errorf("look who owns %s/%d: %w", p.topic, p.id, err)
		}
		if tag.RowsAffected() == 0 {
			return errFenced
		}
		return f(tx)
	})
}

// fence executes single statements behind the fence of a partition.
type fence struct {
	s *session
	p *partition
}

func (f fence) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = f.s.behindFence(ctx, f.p, func(tx pgx.Tx) (err error) {
		tag, err = tx.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// cede ends our work on a partition that another member has taken over. The
// broker has not told us, or not yet: if it goes on counting us as the owner,
// reclaim sees to it.
func (s *session) cede(p *partition) {
	s.mu.Lock()
	current := s.parts[p.place] == p && p.ceded.IsZero()
	if current {
		p.ceded = time.Now()
		s.close(p)
		clear(p.parked)
		s.countParked()
	}
	s.mu.Unlock()
	if !current {
		return
	}
	s.throttle(p.place)
	s.meter.fenced.WithLabelValues(s.cfg.Group, p.topic).Inc()
	s.log.Error("partition given up: another member has taken it over, and this one was not told",
		"topic", p.topic, "partition", p.id, "epoch", p.owner)
}

// reclaim begins anew if a partition was ceded and the broker has counted us as
// its owner ever since. That happens where a member that was slow to notice its
// end took the partition over from its rightful owner: without this nobody
// would work on it until the next rebalance.
func (s *session) reclaim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if !p.ceded.IsZero() && time.Since(p.ceded) > s.cfg.session() {
			s.log.Warn("joining the group again: the broker has this member for the owner of a partition that was taken over",
				"topic", p.topic, "partition", p.id)
			s.restart()
			return
		}
	}
}
