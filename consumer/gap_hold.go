package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// hold parks an event before which numbers are missing; its key waits behind
// it. It counts as no failure.
func (s *session) hold(l *lane, m *message, gap *gapError) {
	f := failure{state: stateRetrying, err: gap, class: classGap, wait: s.cfg.gapLook(0)}
	if s.persist(l.p, func(ctx context.Context) error { return s.park(ctx, l.p, m, f) }) != nil {
		return
	}
	s.tellHeld(m, gap)
	s.setParked(l.p, string(m.rec.Key))
	s.meter.count(m.route.typ, parked, 1)
	s.finish(l, 1)
}

// holdAgain has a parked event wait on for what is missing, or is the end of
// the wait. The end does not come before its key's other parked events were
// looked through for what is missing: class says that they were.
func (s *session) holdAgain(l *lane, m *message, h *head, gap *gapError) {
	known := h.class == classGap
	if known && s.cfg.Gaps == StopAtGaps && h.here >= s.cfg.GapWait {
		s.dieOfGap(l, m, h, gap)
		return
	}
	wait := s.cfg.gapLook(h.here)
	err := s.persist(l.p, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
		return s.behindFence(ctx, l.p, func(tx pgx.Tx) error { return s.noteGap(ctx, tx, l, h, gap, wait) })
	})
	if err != nil {
		return
	}
	if !known {
		s.tellHeld(m, gap)
	}
	s.rest(l, false)
}

func (s *session) noteGap(ctx context.Context, tx pgx.Tx, l *lane, h *head, gap *gapError, wait time.Duration) error {
	cause, id := causeOf(gap.Error())
	_, err := tx.Exec(ctx, `UPDATE waybill.parked SET state = 'retrying', class = $2, error = $3, cause = $4, cause_id = $5,
		next_at = now() + $6::interval WHERE seq = $1`, h.seq, classGap, storable(gap.Error()), cause, id, wait)
	if err == nil {
		_, err = tx.Exec(ctx, fillersSQL+` AND w.key = $4`, s.cfg.Group, []string{l.p.topic}, []int32{l.p.id}, []byte(l.key))
	}
	return err
}

// fillersSQL has the lowest of a key's events tried that waits behind one that
// waits for it.
const fillersSQL = `UPDATE waybill.parked w SET state = 'retrying', next_at = now() FROM waybill.parked h
	WHERE w.group_name = $1 AND (w.topic, w.partition) IN (SELECT * FROM unnest($2::text[], $3::int[]))
		AND w.state = 'waiting' AND w.sequence > 0 AND h.class = '` + classGap + `'
		AND (h.group_name, h.topic, h.partition, h.key, h.tenant) = (w.group_name, w.topic, w.partition, w.key, w.tenant)
		AND h.seq < w.seq AND h.sequence > w.sequence
		AND NOT EXISTS (SELECT FROM waybill.parked o WHERE o.sequence > 0 AND o.sequence < w.sequence
			AND (o.group_name, o.topic, o.partition, o.key, o.tenant) = (w.group_name, w.topic, w.partition, w.key, w.tenant))`

// filler is the lowest of the events that the head waits for, nil if none has
// come.
func (s *session) filler(ctx context.Context, l *lane, h *head) (*head, error) {
	if !s.cfg.Gaps.holds() || h.class != classGap {
		return nil, nil //nolint:nilnil // none is an answer
	}
	f, err := s.parkedEvent(ctx, l, headColumns+`, state = 'waiting' OR (next_at <= now() AND (`+triedSQL+`))
		FROM waybill.parked WHERE group_name = $1 AND topic = $2 AND partition = $3 AND key = $4
			AND tenant = $5 AND sequence > 0 AND sequence < $6 ORDER BY sequence, seq LIMIT 1`, h.tenant, h.sequence)
	if f != nil {
		f.filler = true
	}
	return f, err
}

// takeAway removes a parked event that is done with.
func (s *session) takeAway(ctx context.Context, tx pgx.Tx, l *lane, h *head) error {
	if !h.filler {
		return s.unpark(ctx, tx, l, h)
	}
	tag, err := tx.Exec(ctx, `DELETE FROM waybill.parked WHERE seq = $1`, h.seq)
	if err == nil && tag.RowsAffected() == 0 {
		return errTaken
	}
	if err == nil {
		// One that died for want of what now has come goes on by itself, once
		// the copy of its death is written: see triedSQL.
		_, err = tx.Exec(ctx, `UPDATE waybill.parked SET next_at = now(), attempts = 0,
				redriven_at = CASE WHEN state = 'dead' THEN now() ELSE redriven_at END,
				state = CASE WHEN state = 'dead' THEN 'redrive' ELSE state END
			WHERE group_name = $1 AND topic = $2 AND partition = $3 AND key = $4 AND tenant = $5 AND class = $6
				AND (state = 'retrying' OR state = 'dead' AND sequence <= $7 + 1)`,
			s.cfg.Group, l.p.topic, l.p.id, []byte(l.key), h.tenant, classGap, h.sequence)
	}
	if err == nil {
		_, err = tx.Exec(ctx, fillersSQL+` AND w.key = $4`, s.cfg.Group, []string{l.p.topic}, []int32{l.p.id}, []byte(l.key))
	}
	if err != nil {
		return fmt.Errorf("unpark event that was missing: %w", err)
	}
	s.meter.gap(s.cfg.Group, l.p.topic, gapFilled, 1)
	return nil
}

// dieOfGap is the end of the wait of StopAtGaps. What is missing is told in the
// transaction that makes the event dead, and so once.
func (s *session) dieOfGap(l *lane, m *message, h *head, gap *gapError) {
	told := false
	err := s.persist(l.p, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
		return s.behindFence(ctx, l.p, func(tx pgx.Tx) error {
			n, err := s.noteIn(ctx, tx, h, When(classGap, nil), gap, stateDead, 0)
			if told = n > 0; err != nil || !told {
				return err // it was written, and the answer lost
			}
			_, err = tx.Exec(ctx, `UPDATE waybill.sequence SET reported = greatest(reported, $5), seen_at = now()
				WHERE group_name = $1 AND topic = $2 AND tenant = $3 AND key = $4`,
				s.cfg.Group, l.p.topic, h.tenant, keyOf(m), gap.sequence-1)
			var b pgx.Batch
			s.queueGaps(&b, m, gap.untold, false)
			if err != nil || b.Len() == 0 {
				return err
			}
			return tx.SendBatch(ctx, &b).Close()
		})
	})
	if err != nil {
		return
	}
	if told && len(gap.untold) > 0 {
		s.tellMissing(m, gap.untold, "the key waits until it comes, or the event is redriven or dropped", true)
	}
	s.logFailure("parked event dead", m, gap, h.failures+1)
	s.meter.count(m.route.typ, dead, 1)
	s.died(classGap)
	s.rest(l, false)
}

// putOff lets what is due of a key rest while the event it waits for may not be
// tried yet.
func (s *session) putOff(ctx context.Context, l *lane, filler *head) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, err := (fence{s, l.p}).Exec(ctx, `UPDATE waybill.parked SET next_at = now() + $5::interval
		WHERE group_name = $1 AND topic = $2 AND partition = $3 AND key = $4 AND state = 'retrying' AND next_at <= now()`,
		s.cfg.Group, l.p.topic, l.p.id, []byte(l.key), max(s.cfg.gapLook(filler.here), dueEvery))
	return err
}

// asGap is an error as one of numbers: at most one is not nil.
func asGap(err error) (gap *gapError, late *lateError) {
	errors.As(err, &gap)
	errors.As(err, &late)
	return gap, late
}

// deadOfNoHandler makes a parked event dead whose type nobody handles any more.
// To pass it over would lose it, as where a release that handles it was taken
// back for an hour.
func (s *session) deadOfNoHandler(l *lane, h *head) time.Duration {
	failed := fmt.Errorf("type %q has no handler in this group any more: run a release that has one and have it tried, or drop it", clip(recordType(h.rec)))
	r := When(classNoHandler, nil)
	if s.persist(l.p, func(ctx context.Context) error { return s.note(ctx, l.p, nil, h, r, failed, stateDead, 0) }) != nil {
		return 0
	}
	s.log.Error("parked event dead: its type has no handler now", "topic", l.p.topic, "partition", l.p.id,
		"key", l.key, "offset", h.rec.Offset, "type", recordType(h.rec))
	s.meter.count(otherType, dead, 1)
	s.died(r.class)
	s.rest(l, false)
	return 0
}
