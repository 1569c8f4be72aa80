package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/waybillhq/waybill/incident"
)

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// wholeTopic stands for every partition of a topic that is not there.
const wholeTopic = -1

func (p place) String() string {
	if p.partition == wholeTopic {
		return p.topic
	}
	return fmt.Sprintf("%s/%d", p.topic, p.partition)
}

// stopped are the partitions nothing is published to, as written down in
// waybill.outbox_stopped.
type stopped struct {
	mu     sync.Mutex
	places map[place]*stopState
}

type stopState struct {
	event      uuid.UUID
	partitions int           // of the topic when it stopped, 0 if unknown
	next       time.Time     // when it is tried again
	wait       time.Duration // after that
}

// Tries of a stopped partition go from a second to half a minute apart.
const (
	firstTry = time.Second
	lastTry  = 30 * time.Second
)

func (s *stopped) note(at *stop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.places[at.place]
	if st == nil {
		st = &stopState{partitions: at.partitions}
		s.places[at.place] = st
	}
	if st.event != at.event {
		st.event, st.wait = at.event, firstTry
	}
	st.next = time.Now().Add(st.wait)
	st.wait = min(2*st.wait, lastTry)
}

func (s *stopped) forget(at place, event uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.places[at]; st != nil && st.event == event {
		delete(s.places, at)
	}
}

func (s *stopped) state(at place) stopState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.places[at]; st != nil {
		return *st
	}
	return stopState{}
}

// later has the place looked at no sooner than after another wait.
func (s *stopped) later(at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.places[at]; st != nil {
		st.next = time.Now().Add(st.wait)
	}
}

// hurry has the place looked at the next time.
func (s *stopped) hurry(at place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.places[at]; st != nil {
		st.next = time.Time{}
	}
}

func (s *stopped) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.places)
}

// candidates are the partitions that may be looked at, and which of them are
// due whatever an operator says.
func (s *stopped) candidates(now time.Time) map[place]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[place]bool{}
	for at, st := range s.places {
		out[at] = !now.Before(st.next)
	}
	return out
}

// loadStopped takes over what the relay before us had stopped. Where nothing is
// kept back in the table, the event will be refused again, or not.
func (s *session) loadStopped(ctx context.Context) error {
	rows, err := s.db.Query(ctx, `SELECT topic, partition, event_id FROM waybill.outbox_stopped WHERE slot = $1`, s.cfg.Slot)
	if err != nil {
		return unlessDone(ctx, fmt.Errorf("look for stopped partitions: %w", err))
	}
	var at place
	var event uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&at.topic, &at.partition, &event}, func() error {
		s.stopped.places[at] = &stopState{event: event, wait: firstTry}
		return nil
	})
	if err != nil {
		return unlessDone(ctx, fmt.Errorf("look for stopped partitions: %w", err))
	}
	s.metrics.stopped.Set(float64(len(s.stopped.places)))
	if !s.cfg.keeps() || len(s.stopped.places) == 0 {
		return nil
	}
	for at := range s.stopped.places {
		if err := s.reader.close(ctx, at); err != nil {
			return unlessDone(ctx, err)
		}
	}
	if s.stream == nil {
		return nil
	}
	return unlessDone(ctx, s.reader.unseen.addRunning(ctx, s.db)) // the relay before us kept them in mind
}

// close makes a partition take nothing.
func (r *reader) close(ctx context.Context, at place) error {
	if at.partition == wholeTopic {
		r.topics[at.topic] = &topic{}
		return nil
	}
	t, err := r.s.producer.Topic(ctx, at.topic)
	var refused *kerr.Error
	switch {
	case err == nil:
	case errors.As(err, &refused) && ctx.Err() == nil: // the topic is gone by now
		r.topics[at.topic] = &topic{}
		r.s.ledger.stop(stop{place: place{at.topic, wholeTopic}, event: r.s.stopped.state(at).event, err: err})
		return nil
	default:
		return err
	}
	if q := t.Partition(int(at.partition)); q != nil {
		q.Close()
	}
	return nil
}

// noteStop writes down, before anything behind it is confirmed, that a
// partition has stopped.
func (s *session) noteStop(ctx context.Context, st *stop) error {
	var attempts int64
	err := s.db.QueryRow(ctx, `INSERT INTO waybill.outbox_stopped AS o (slot, topic, partition, event_id, error)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (slot, topic, partition) DO UPDATE SET error = EXCLUDED.error, tried_at = now(),
			attempts = CASE WHEN o.event_id = EXCLUDED.event_id THEN o.attempts + 1 ELSE 1 END,
			since = CASE WHEN o.event_id = EXCLUDED.event_id THEN o.since ELSE now() END,
			event_id = EXCLUDED.event_id
		RETURNING attempts`, s.cfg.Slot, st.topic, st.partition, st.event, st.err.Error()).Scan(&attempts)
	if err != nil {
		return fmt.Errorf("note that %s has stopped: %w", st.place, err)
	}
	s.stopped.note(st)
	s.metrics.stopped.Set(float64(s.stopped.count()))
	if attempts == 1 {
		s.log.ErrorContext(ctx, "an event is refused: its partition waits for it, the others go on; mend the cause, or give the event up with `waybill outbox skip`",
			"topic", st.topic, "partition", st.partition, "event", st.event, "error", st.err)
		s.incident(ctx, "partition_stopped", st.String(), fmt.Sprintf("event %s: %v", st.event, st.err))
	} else {
		s.log.WarnContext(ctx, "a refused event is refused again",
			"topic", st.topic, "partition", st.partition, "event", st.event, "error", st.err, "attempts", attempts)
	}
	return nil
}

// forgetStop notes that a partition does not wait for that event any more. It
// may have stopped at the next one meanwhile.
func (s *session) forgetStop(ctx context.Context, at place, event uuid.UUID) error {
	done, err := s.db.Exec(ctx, `DELETE FROM waybill.outbox_stopped WHERE slot = $1 AND topic = $2 AND partition = $3 AND event_id = $4`,
		s.cfg.Slot, at.topic, at.partition, event)
	if err != nil {
		return fmt.Errorf("note that %s goes on: %w", at, err)
	}
	s.stopped.forget(at, event)
	s.metrics.stopped.Set(float64(s.stopped.count()))
	if done.RowsAffected() > 0 {
		s.log.InfoContext(ctx, "a stopped partition goes on", "topic", at.topic, "partition", at.partition)
	}
	return nil
}

// skipAsked tells whether an operator gave the event up.
func (s *session) skipAsked(ctx context.Context, event uuid.UUID) (asked bool, err error) {
	err = s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.outbox_skips WHERE event_id = $1)`, event).Scan(&asked)
	if err != nil {
		return false, fmt.Errorf("look whether event %s is given up: %w", event, err)
	}
	return asked, nil
}

// noteSkip marks an event that was given up, if it has a row and no mark yet.
// The mark says where the WAL was: should the slot send the event again, it is
// passed over.
func (s *session) noteSkip(ctx context.Context, event uuid.UUID) (done bool, err error) {
	tag, err := s.db.Exec(ctx, `INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset, commit_lsn)
		SELECT id, now(), -1, -1, pg_current_wal_insert_lsn() FROM waybill.outbox_events e WHERE id = $1
			AND NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)`, event)
	if err != nil {
		return false, fmt.Errorf("mark event %s as given up: %w", event, err)
	}
	return tag.RowsAffected() > 0, nil
}

func (s *session) tellSkip(ctx context.Context, at place, event uuid.UUID) {
	var by, reason string
	if err := s.db.QueryRow(ctx, `SELECT asked_by, reason FROM waybill.outbox_skips WHERE event_id = $1`, event).Scan(&by, &reason); err != nil {
		by, reason = "an operator", "not known: "+err.Error()
	}
	s.log.WarnContext(ctx, "an event is given up, as asked", "topic", at.topic, "partition", at.partition, "event", event, "asked_by", by, "reason", reason)
	s.incident(ctx, "event_skipped", event.String(), fmt.Sprintf("given up by %s, reason: %s; the partition %s goes on without it", by, reason, at))
}

// incident tells operators. That it cannot be told must not stop events.
func (s *session) incident(ctx context.Context, kind, subject, text string) {
	s.Relay.incident(ctx, kind, subject, text)
}

func (r *Relay) incident(ctx context.Context, kind, subject, text string) {
	err := incident.Record(ctx, r.db, incident.Incident{
		Part: "relay", Kind: kind, Subject: subject, Text: text, Detail: map[string]any{"slot": r.cfg.Slot},
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		r.log.WarnContext(ctx, "note an incident", "kind", kind, "error", err)
	}
}
