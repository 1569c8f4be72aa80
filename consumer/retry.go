package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"
)

// head is the first of a key's parked events.
type head struct {
	seq      int64
	attempts int
	due      bool
	rec      *kgo.Record
}

// retry tries the head of a lane's parked events. The lane stays due until the
// head fails or nothing is left, which frees the key.
func (s *session) retry(l *lane) time.Duration {
	var h *head
	if s.persist(l.p, func(ctx context.Context) (err error) { h, err = s.head(ctx, l); return err }) != nil {
		return 0
	}
	if h == nil || !h.due {
		s.rest(l, h == nil)
		return 0
	}
	m := s.read(h.rec)
	if m == nil {
		return s.forget(l, h)
	}
	what, wait, err := s.attempt(l, m, func(ctx context.Context, t pgx.Tx) error { return s.unpark(ctx, t, l, h) })
	switch {
	case wait > 0:
		return wait
	case err == nil:
		l.waits, l.cuts = 0, 0
		s.meter.count(m.route.typ, what, 1)
	case !errors.Is(err, errOver):
		s.failedAgain(l, m, h, err)
	}
	return 0
}

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

func (s *session) head(ctx context.Context, l *lane) (*head, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	h := &head{rec: &kgo.Record{Topic: l.p.topic, Partition: l.p.id}}
	var names, values [][]byte
	err := s.deps.DB.QueryRow(ctx, `SELECT seq, attempts, next_at <= now(), "offset", key, record_time, header_names,
			header_values, value
		FROM waybill.parked WHERE group_name = $1 AND topic = $2 AND partition = $3 AND key = $4
		ORDER BY seq LIMIT 1`, s.cfg.Group, l.p.topic, l.p.id, []byte(l.key)).
		Scan(&h.seq, &h.attempts, &h.due, &h.rec.Offset, &h.rec.Key, &h.rec.Timestamp, &names, &values, &h.rec.Value)
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

// executor is a transaction or the pool.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// unpark takes the head away and puts the next in its place.
func (s *session) unpark(ctx context.Context, db executor, l *lane, h *head) error {
	_, err := db.Exec(ctx, `WITH gone AS (DELETE FROM waybill.parked WHERE seq = $5)
		UPDATE waybill.parked SET state = 'retrying', next_at = now() WHERE seq = (
			SELECT min(seq) FROM waybill.parked
			WHERE group_name = $1 AND topic = $2 AND partition = $3 AND key = $4 AND seq > $5)`,
		s.cfg.Group, l.p.topic, l.p.id, []byte(l.key), h.seq)
	if err != nil {
		return fmt.Errorf("unpark event: %w", err)
	}
	return nil
}

// failedAgain lets the head, and with it the key, rest for longer. The place
// for a ceiling of attempts and dead letters.
func (s *session) failedAgain(l *lane, m *message, h *head, failure error) {
	s.logFailure("parked event failed again", m, failure, h.attempts+1)
	err := s.persist(l.p, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		defer cancel()
		_, err := (fence{s, l.p}).Exec(ctx, `UPDATE waybill.parked
			SET attempts = attempts + 1, error = $2, next_at = now() + $3::interval WHERE seq = $1`,
			h.seq, storable(failure.Error()), s.parkedFor(h.attempts+1))
		return err
	})
	if err == nil {
		s.rest(l, false)
	}
}

// forget drops a parked event whose type nobody handles any more, as a new one
// would be skipped.
func (s *session) forget(l *lane, h *head) time.Duration {
	err := s.persist(l.p, func(ctx context.Context) error { return s.unpark(ctx, fence{s, l.p}, l, h) })
	if err == nil {
		s.meter.count(otherType, skipped, 1)
		s.log.Warn("parked event skipped: its type has no handler now", "topic", l.p.topic, "partition", l.p.id,
			"key", l.key, "offset", h.rec.Offset, "type", recordType(h.rec))
	}
	return 0
}
