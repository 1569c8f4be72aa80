package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	copyEvery  = time.Second      // at most; a death of our own is copied at once
	copyAtOnce = 32               // rows in memory, each with a value as large as its topic takes
	copyWithin = 10 * time.Second // of a round's writes, and of a look for them
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
		s.tellDeath(ctx, &due[i])
	}
	return len(due), s.settleCopies(ctx, due, s.produceCopies(ctx, due, declared))
}

// produceCopies tells of each death nil once the broker has a copy: the whole of
// it, or as much as it takes.
func (s *session) produceCopies(ctx context.Context, due []death, declared map[string]bool) []error {
	ctx, cancel := context.WithTimeout(ctx, copyWithin)
	defer cancel()
	failed := make([]error, len(due))
	for size := copyWhole; size < copyTooLarge; size++ {
		var recs []*kgo.Record
		of := map[*kgo.Record]int{}
		for i := range due {
			if size > copyWhole && !tooLarge(failed[i]) {
				continue
			}
			if failed[i] = s.declareOnce(ctx, due[i].rec.Topic, declared); failed[i] == nil {
				rec := due[i].copyOf(s.cfg.Group, size)
				recs, of[rec] = append(recs, rec), i
			}
		}
		for _, r := range s.cl.ProduceSync(ctx, recs...) {
			failed[of[r.Record]] = r.Err
			if errors.Is(r.Err, kerr.UnknownTopicOrPartition) {
				delete(declared, r.Record.Topic) // it was deleted
			}
		}
		// Together they may be more than the topic takes at once.
		for rec, i := range of {
			if tooLarge(failed[i]) && len(recs) > 1 {
				failed[i] = s.cl.ProduceSync(ctx, rec).FirstErr()
			}
		}
	}
	return failed
}

func tooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

func (s *session) declareOnce(ctx context.Context, source string, declared map[string]bool) error {
	name := DeadTopic(source, s.cfg.Group)
	if declared[name] {
		return nil
	}
	if err := s.declareDead(ctx, name); err != nil {
		return fmt.Errorf("declare %s: %w", name, err)
	}
	declared[name] = true
	return nil
}

// settleCopies notes what became of copies. One that the broker refused is tried
// again in half a minute, and holds up no redrive meanwhile; where the broker was
// not reached nothing is known.
func (s *session) settleCopies(ctx context.Context, due []death, failed []error) error {
	ctx, cancel := context.WithTimeout(ctx, copyWithin)
	defer cancel()
	var seqs []int64
	var ids []uuid.UUID
	var errs []error
	for i := range due {
		d := &due[i]
		var said *kerr.Error
		switch {
		case failed[i] == nil:
			seqs, ids = append(seqs, d.seq), append(ids, d.id)
		case errors.As(failed[i], &said):
			errs = append(errs, s.noteRefusal(ctx, d, failed[i]))
		default:
			errs = append(errs, fmt.Errorf("copy a dead event: %w", failed[i]))
		}
	}
	if len(seqs) > 0 {
		_, err := s.deps.DB.Exec(ctx, `UPDATE waybill.parked SET copied_at = now(), copy_error = ''
			FROM unnest($1::bigint[], $2::uuid[]) AS c(seq, id) WHERE parked.seq = c.seq AND death_id = c.id`, seqs, ids)
		s.dead.copies.WithLabelValues(s.cfg.Group).Add(float64(len(seqs)))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("copies of dead events: %w", err)
	}
	return nil
}

func (s *session) noteRefusal(ctx context.Context, d *death, refused error) error {
	s.dead.failed.WithLabelValues(s.cfg.Group).Inc()
	s.log.ErrorContext(ctx, "dead event not copied", "topic", DeadTopic(d.rec.Topic, s.cfg.Group),
		"source", d.rec.Topic, "partition", d.rec.Partition, "offset", d.rec.Offset, "error", refused)
	_, err := s.deps.DB.Exec(ctx, `UPDATE waybill.parked SET copy_tried_at = now(), copy_error = $3 WHERE seq = $1 AND death_id = $2`,
		d.seq, d.id, storable(refused.Error()))
	return err
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
