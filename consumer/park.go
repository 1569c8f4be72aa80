package consumer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const parkSQL = `INSERT INTO waybill.parked (group_name, topic, partition, "offset", key, event_id, type, tenant,
		subject, sequence, record_time, header_names, header_values, value, state, error, attempts, next_at,
		class, cause, cause_id, failures, first_failed_at, last_failed_at, dead_at, death_id, passes)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::text, $16, $17, now() + $18::interval,
		$19, $20, $21, $22, now() - $23::interval, CASE WHEN $22 > 0 THEN now() END,
		CASE WHEN $15::text = 'dead' THEN now() END, CASE WHEN $15::text = 'dead' THEN gen_random_uuid() END, $24)
	ON CONFLICT DO NOTHING`

// What is done with an event that is parked, or dead.
const (
	stateRetrying = "retrying"
	stateWaiting  = "waiting"
	stateDead     = "dead"
	stateRedrive  = "redrive"
)

// failure is what a parked row says of how its event failed.
type failure struct {
	state    string
	err      error
	class    string
	failures int            // so far
	ago      *time.Duration // the first of them
	wait     time.Duration  // until the next try
}

// park moves an event that failed to the parked table, at the head of its key.
// Nothing happens if the record is there already: it was delivered again.
func (s *session) park(ctx context.Context, p *partition, m *message, f failure) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err := s.behindFence(ctx, p, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, parkSQL, s.parkArgs(m, f)...)
		if err != nil || tag.RowsAffected() == 0 || f.class != classLate {
			return err
		}
		return s.noteLate(ctx, tx, m)
	})
	if err != nil {
		return fmt.Errorf("park event %s: %w", m.env.ID, err)
	}
	return nil
}

// headSQL makes the first of a key's parked events its head, should whoever
// took the one before not have done so.
const headSQL = `UPDATE waybill.parked SET state = 'retrying', next_at = now() WHERE state = 'waiting' AND seq = (
	SELECT min(seq) FROM waybill.parked WHERE group_name = $1 AND topic = $2 AND partition = $3 AND key = $4)`

// parkBehind appends events to those parked under the lane's key. The batch is
// one transaction.
func (s *session) parkBehind(ctx context.Context, l *lane, batch []*message) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var b pgx.Batch
	for _, m := range batch {
		b.Queue(parkSQL, s.parkArgs(m, failure{state: stateWaiting})...)
	}
	b.Queue(headSQL, s.cfg.Group, l.p.topic, l.p.id, []byte(l.key))
	if s.cfg.Gaps.holds() {
		b.Queue(fillersSQL+` AND w.key = $4`, s.cfg.Group, []string{l.p.topic}, []int32{l.p.id}, []byte(l.key))
	}
	if err := s.behindFence(ctx, l.p, func(tx pgx.Tx) error { return tx.SendBatch(ctx, &b).Close() }); err != nil {
		return fmt.Errorf("park %d events behind another: %w", len(batch), err)
	}
	return nil
}

func (s *session) parkArgs(m *message, f failure) []any {
	names, values := make([][]byte, len(m.rec.Headers)), make([][]byte, len(m.rec.Headers))
	for i, h := range m.rec.Headers {
		names[i], values[i] = []byte(h.Key), h.Value
	}
	var text, cause, id string
	attempts := 0
	if f.err != nil {
		text = f.err.Error()
		cause, id = causeOf(text)
	}
	if f.failures > 0 {
		attempts = 1
	}
	return []any{
		s.cfg.Group, m.pos.Topic, m.pos.Partition, m.pos.Offset, keyOf(m), m.env.ID, storable(m.env.Type),
		storable(m.env.Tenant), storable(m.env.Subject), m.env.Sequence, m.rec.Timestamp, names, values,
		m.rec.Value, f.state, storable(text), attempts, f.wait, f.class, cause, id, f.failures, f.ago, m.route.pass,
	}
}

// keyOf is a record's key as it is stored: never NULL.
func keyOf(m *message) []byte {
	if m.rec.Key == nil {
		return []byte{}
	}
	return m.rec.Key
}

// storable makes text that a text column takes: an event must not fail to be
// parked over what it says of itself.
func storable(text string) string {
	const limit = 8 << 10
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
}
