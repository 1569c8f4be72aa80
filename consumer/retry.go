package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// head is the first of a key's parked events.
type head struct {
	seq      int64
	attempts int // failed ones since it was parked or redriven
	failures int // all that failed
	since    time.Duration
	due      bool
	rec      *kgo.Record

	class    string
	tenant   string
	sequence int64
	here     time.Duration // since it was parked
	passes   bool          // nobody handled its type when it came: it is only counted
	holeOK   bool          // it goes on whatever number is missing before it
	filler   bool          // it is not the first: the first waits for it
}

// retry tries the head of a lane's parked events. The lane stays due until the
// head fails or nothing is left, which frees the key.
func (s *session) retry(l *lane) time.Duration {
	var h *head
	if s.persist(l.p, func(ctx context.Context) (err error) { h, err = s.head(ctx, l); return err }) != nil {
		return 0
	}
	if h != nil && !h.due && h.filler && s.persist(l.p, func(ctx context.Context) error { return s.putOff(ctx, l, h) }) != nil {
		return 0
	}
	if h == nil || !h.due {
		s.rest(l, h == nil)
		return 0
	}
	m := s.read(h.rec)
	if m == nil || m.route.pass && !h.passes {
		return s.deadOfNoHandler(l, h)
	}
	m.holeOK = h.holeOK || s.cfg.Gaps == HoldGaps && h.class == classGap && h.here >= s.cfg.GapWait
	what, wait, err := s.attempt(l, m, func(ctx context.Context, t pgx.Tx) error { return s.takeAway(ctx, t, l, h) })
	switch {
	case wait > 0:
		return wait
	case err == nil:
		l.waits, l.cuts = 0, 0
		s.meter.count(m.route.typ, what, 1)
	case !errors.Is(err, errOver) && !errors.Is(err, errTaken):
		s.failedAgain(l, m, h, err)
	}
	return 0
}

// errTaken says that another hand took the head away, which then is not ours to
// handle.
var errTaken = errors.New("parked event is gone")

// rest ends the lane's turn at its parked events.
func (s *session) rest(l *lane, free bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Both at once: remind, coming in between, would leave the key parked with
	// nobody to try its head.
	l.due = false
	if free {
		delete(l.p.parked, l.key)
		s.countParked()
		s.log.Info("key freed", "topic", l.p.topic, "partition", l.p.id, "key", l.key)
	}
}

// head is the first of the parked events of a lane's key. In a group that keeps
// no order it is the first that may be tried: nothing waits for the dead.
func (s *session) head(ctx context.Context, l *lane) (*head, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	h, err := s.parkedEvent(ctx, l, headColumns+`, next_at <= now() AND (`+triedSQL+`)
		FROM waybill.parked WHERE group_name = $1 AND topic = $2 AND partition = $3 AND key = $4 AND (NOT $5 OR (`+triedSQL+`))
		ORDER BY seq LIMIT 1`, s.cfg.Ordering == Unordered)
	if h == nil || err != nil {
		return nil, err
	}
	filler, err := s.filler(ctx, l, h)
	if filler != nil || err != nil {
		return filler, err
	}
	return h, nil
}

const headColumns = `SELECT seq, attempts, failures, now() - coalesce(redriven_at, first_failed_at, parked_at),
	"offset", key, record_time, header_names, header_values, value, class, tenant, sequence, now() - parked_at, passes, hole_ok`

// parkedEvent reads a row of the parked table by a statement of headColumns and
// whether it is due, for the lane's key; nil if there is none.
func (s *session) parkedEvent(ctx context.Context, l *lane, sql string, args ...any) (*head, error) {
	h := &head{rec: &kgo.Record{Topic: l.p.topic, Partition: l.p.id}}
	var names, values [][]byte
	err := s.deps.DB.QueryRow(ctx, sql, append([]any{s.cfg.Group, l.p.topic, l.p.id, []byte(l.key)}, args...)...).
		Scan(&h.seq, &h.attempts, &h.failures, &h.since, &h.rec.Offset, &h.rec.Key, &h.rec.Timestamp, &names, &values, &h.rec.Value,
			&h.class, &h.tenant, &h.sequence, &h.here, &h.passes, &h.holeOK, &h.due)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read parked event: %w", err)
	}
	for i := range names {
		h.rec.Headers = append(h.rec.Headers, kgo.RecordHeader{Key: string(names[i]), Value: values[i]})
	}
	return h, nil
}

// triedSQL tells a head that may be tried from one that is dead. A redriven one
// waits until the copy of its death is written, or is known to be refused: its
// row is where the copy comes from.
const triedSQL = `state = 'retrying' OR (state = 'redrive' AND (death_id IS NULL OR copied_at IS NOT NULL OR copy_error <> ''))`

// asker is a transaction or the pool.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// unpark takes the head away and puts the next in its place. It is errTaken if
// the head is gone.
func (s *session) unpark(ctx context.Context, db asker, l *lane, h *head) error {
	var gone int
	err := db.QueryRow(ctx, `WITH gone AS (DELETE FROM waybill.parked WHERE seq = $5 RETURNING seq),
		next AS (UPDATE waybill.parked SET state = 'retrying', next_at = now()
			WHERE state = 'waiting' AND EXISTS (SELECT FROM gone) AND seq = (
				SELECT min(seq) FROM waybill.parked
				WHERE group_name = $1 AND topic = $2 AND partition = $3 AND key = $4 AND seq > $5))
		SELECT count(*) FROM gone`,
		s.cfg.Group, l.p.topic, l.p.id, []byte(l.key), h.seq).Scan(&gone)
	if err != nil {
		return fmt.Errorf("unpark event: %w", err)
	}
	if gone == 0 {
		return errTaken
	}
	return nil
}

// failedAgain lets the head, and with it the key, rest for longer, or is the
// event's end by its rule.
func (s *session) failedAgain(l *lane, m *message, h *head, failed error) {
	h.holeOK = m.holeOK
	if gap, _ := asGap(failed); gap != nil {
		s.holdAgain(l, m, h, gap)
		return
	}
	r := s.rule(failed)
	wait, rests := r.rest(h.attempts+1, h.since)
	state, what := stateRetrying, "parked event failed again"
	switch {
	case rests:
	case r.end == endStop:
		s.stopAt(l, m, failed)
		return
	case r.end == endDrop:
		s.dropHead(l, m, h, r, failed)
		return
	default:
		state, what = stateDead, "parked event dead"
	}
	s.logFailure(what, m, failed, h.failures+1)
	if s.persist(l.p, func(ctx context.Context) error { return s.note(ctx, l.p, m, h, r, failed, state, wait) }) != nil {
		return
	}
	if state == stateDead {
		s.meter.count(m.route.typ, dead, 1)
		s.died(r.class)
		if r.class == classLate {
			s.tellLate(m, true)
		}
	}
	s.rest(l, false)
}

// note writes down that the head failed, and what is to become of it. A new
// death has a new copy.
func (s *session) note(ctx context.Context, p *partition, m *message, h *head, r Rule, failed error, state string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	return s.behindFence(ctx, p, func(tx pgx.Tx) error {
		n, err := s.noteIn(ctx, tx, h, r, failed, state, wait)
		if err != nil || n == 0 || r.class != classLate {
			return err
		}
		return s.noteLate(ctx, tx, m)
	})
}

// noteIn does that in a transaction, and says how many rows it changed: none if
// it was written, and the answer lost.
func (s *session) noteIn(ctx context.Context, tx pgx.Tx, h *head, r Rule, failed error, state string, wait time.Duration) (int64, error) {
	cause, id := causeOf(failed.Error())
	tag, err := tx.Exec(ctx, `UPDATE waybill.parked
		SET attempts = attempts + 1, failures = failures + 1, error = $3, class = $4, cause = $5, cause_id = $6,
			first_failed_at = coalesce(first_failed_at, now()), last_failed_at = now(),
			state = $7::text, next_at = now() + $8::interval, hole_ok = hole_ok OR $9,
			dead_at = CASE WHEN $7::text = 'dead' THEN now() ELSE dead_at END,
			death_id = CASE WHEN $7::text = 'dead' THEN gen_random_uuid() ELSE death_id END,
			copied_at = CASE WHEN $7::text = 'dead' THEN NULL ELSE copied_at END,
			copy_tried_at = CASE WHEN $7::text = 'dead' THEN NULL ELSE copy_tried_at END,
			copy_error = CASE WHEN $7::text = 'dead' THEN '' ELSE copy_error END
		WHERE seq = $1 AND failures = $2`,
		h.seq, h.failures, storable(failed.Error()), r.class, cause, id, state, wait, h.holeOK)
	return tag.RowsAffected(), err
}

// dropHead is dropMessage of a parked event.
func (s *session) dropHead(l *lane, m *message, h *head, r Rule, failed error) {
	if s.persist(l.p, func(ctx context.Context) error { return s.dropByRule(ctx, l, m, h, r, failed) }) != nil {
		return
	}
	s.logFailure("parked event dropped by its policy", m, failed, h.failures+1)
	s.meter.count(m.route.typ, dropped, 1)
}
