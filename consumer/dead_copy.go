package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	copyEvery  = time.Second      // at most; a death of our own is copied at once
	copyAtOnce = 16               // rows in memory
	copyWithin = 10 * time.Second // of one, and of a look for them
)

// copyDead writes copies of dead events to their topics: the parked row is the
// outbox of its copy. Only when the broker has it is that noted, so a kill in
// between has it written again, under the same id.
func (s *session) copyDead(ctx context.Context) {
	declared := map[string]bool{}
	t := time.NewTicker(copyEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-s.deaths:
		}
		for more := true; more && ctx.Err() == nil; {
			n, err := s.copyRound(ctx, declared)
			if err != nil && ctx.Err() == nil && !errors.Is(err, kgo.ErrClientClosed) {
				s.outage(err)
			}
			more = err == nil && n == copyAtOnce
		}
	}
}

// copyRound copies what is due of our partitions, and says how many that were.
func (s *session) copyRound(ctx context.Context, declared map[string]bool) (int, error) {
	due, err := s.uncopied(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for dead events to copy: %w", err)
	}
	for i := range due {
		d := &due[i]
		s.tellDeath(ctx, d)
		if err := s.settleCopy(ctx, d, s.copyOne(ctx, d, declared)); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// copyOne is nil once the broker has a copy: the whole of it, or as much as it
// takes.
func (s *session) copyOne(ctx context.Context, d *death, declared map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, copyWithin)
	defer cancel()
	name := DeadTopic(d.rec.Topic, s.cfg.Group)
	if !declared[name] {
		if err := s.declareDead(ctx, name); err != nil {
			return fmt.Errorf("declare %s: %w", name, err)
		}
		declared[name] = true
	}
	var err error
	for size := copyWhole; size < copyTooLarge; size++ {
		err = s.cl.ProduceSync(ctx, d.copyOf(s.cfg.Group, size)).FirstErr()
		if !errors.Is(err, kerr.MessageTooLarge) && !errors.Is(err, kerr.RecordListTooLarge) {
			break
		}
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		declared[name] = false // it was deleted
	}
	return err
}

// settleCopy notes what became of a copy. One that the broker refused is tried
// again in half a minute, and holds up no redrive meanwhile; where the broker was
// not reached nothing is known.
func (s *session) settleCopy(ctx context.Context, d *death, failed error) error {
	ctx, cancel := context.WithTimeout(ctx, copyWithin)
	defer cancel()
	var said *kerr.Error
	var err error
	switch {
	case failed != nil && !errors.As(failed, &said):
		return fmt.Errorf("copy a dead event: %w", failed)
	case failed == nil:
		s.dead.copies.WithLabelValues(s.cfg.Group).Inc()
		_, err = s.deps.DB.Exec(ctx, `UPDATE waybill.parked SET copied_at = now(), copy_error = '' WHERE seq = $1 AND death_id = $2`, d.seq, d.id)
	default:
		s.dead.failed.WithLabelValues(s.cfg.Group).Inc()
		s.log.ErrorContext(ctx, "dead event not copied", "topic", DeadTopic(d.rec.Topic, s.cfg.Group),
			"source", d.rec.Topic, "partition", d.rec.Partition, "offset", d.rec.Offset, "error", failed)
		_, err = s.deps.DB.Exec(ctx, `UPDATE waybill.parked SET copy_tried_at = now(), copy_error = $3 WHERE seq = $1 AND death_id = $2`,
			d.seq, d.id, storable(failed.Error()))
	}
	if err != nil {
		return fmt.Errorf("note the copy of a dead event: %w", err)
	}
	return nil
}

// uncopied is what is dead and has no copy, on our partitions.
func (s *session) uncopied(ctx context.Context) ([]death, error) {
	ctx, cancel := context.WithTimeout(ctx, copyWithin)
	defer cancel()
	places := s.parkedPlaces(true)
	if len(places) == 0 {
		return nil, nil
	}
	topics, ids := columns(places)
	rows, err := s.deps.DB.Query(ctx, `SELECT seq, death_id, topic, partition, "offset", key, record_time, header_names,
			header_values, value, type, tenant, error, class, cause, cause_id, failures,
			coalesce(first_failed_at, parked_at), coalesce(last_failed_at, parked_at),
			NOT EXISTS (SELECT FROM waybill.parked o WHERE o.group_name = $1 AND o.cause_id = p.cause_id
				AND o.state = 'dead' AND o.seq <> p.seq AND (o.dead_at, o.seq) < (p.dead_at, p.seq))
		FROM waybill.parked p
		WHERE group_name = $1 AND death_id IS NOT NULL AND copied_at IS NULL
			AND (copy_tried_at IS NULL OR copy_tried_at < now() - interval '30 seconds')
			AND (topic, partition) IN (SELECT * FROM unnest($2::text[], $3::int[]))
		ORDER BY dead_at, seq LIMIT $4`, s.cfg.Group, topics, ids, copyAtOnce)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanDeath)
}

func scanDeath(row pgx.CollectableRow) (d death, err error) {
	var names, values [][]byte
	err = row.Scan(&d.seq, &d.id, &d.rec.Topic, &d.rec.Partition, &d.rec.Offset, &d.rec.Key, &d.rec.Timestamp,
		&names, &values, &d.rec.Value, &d.typ, &d.tenant, &d.reason, &d.class, &d.cause, &d.causeID,
		&d.attempts, &d.since, &d.last, &d.first)
	d.rec.Headers = headersOf(names, values)
	return d, err
}

func headersOf(names, values [][]byte) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, len(names))
	for i := range names {
		out[i] = kgo.RecordHeader{Key: string(names[i]), Value: values[i]}
	}
	return out
}
