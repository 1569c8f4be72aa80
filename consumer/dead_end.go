package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/incident"
)

// setAside is the end of a message whose tries in place are used up, by its
// rule. It holds until that is written, or the partition is given up.
func (s *session) setAside(l *lane, m *message, r Rule, failed error) {
	f := failure{state: stateRetrying, err: failed, class: r.class, failures: l.attempts}
	ago := time.Since(l.since)
	f.ago = &ago
	wait, rests := r.rest(1, ago)
	what := parked
	switch {
	case rests:
		f.wait = wait
	case r.end == endStop:
		s.stopAt(l, m, failed)
		return
	case r.end == endDrop:
		s.dropMessage(l, m, r, failed)
		return
	default:
		f.state, what = stateDead, dead
	}
	s.logFailure("event "+string(what), m, failed, l.attempts)
	if s.persist(l.p, func(ctx context.Context) error { return s.park(ctx, l.p, m, f) }) != nil {
		return
	}
	s.setParked(l.p, string(m.rec.Key))
	s.meter.count(m.route.typ, what, 1)
	if what == dead {
		s.died(r.class)
		if r.class == classLate {
			s.tellLate(m, true)
		}
	}
	s.finish(l, 1)
}

// died counts a death and has its copy made.
func (s *session) died(class string) {
	s.dead.deaths.WithLabelValues(s.cfg.Group, class).Inc()
	select {
	case s.deaths <- struct{}{}:
	default:
	}
}

// dropMessage passes a message over, by its rule.
func (s *session) dropMessage(l *lane, m *message, r Rule, failed error) {
	if s.persist(l.p, func(ctx context.Context) error { return s.dropByRule(ctx, l, m, nil, r, failed) }) != nil {
		return
	}
	s.logFailure("event dropped by its policy", m, failed, l.attempts)
	s.meter.count(m.route.typ, dropped, 1)
	s.finish(l, 1)
}

// dropByRule claims an event as if it had been handled, notes that, and takes
// it from the parked table if it is there.
func (s *session) dropByRule(ctx context.Context, l *lane, m *message, h *head, r Rule, failed error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err := s.behindFence(ctx, l.p, func(t pgx.Tx) error {
		claim, err := t.Exec(ctx, `INSERT INTO waybill.inbox (event_id, group_name) VALUES ($1, $2) ON CONFLICT DO NOTHING`, m.env.ID, s.cfg.Group)
		if err == nil && claim.RowsAffected() == 1 { // else it was dropped before
			_, err = t.Exec(ctx, `INSERT INTO waybill.dead_action (run, action, by, reason, group_name, topic, partition,
					"offset", key, event_id, type, tenant, class, error, sequence)
				VALUES ($1, 'drop', 'policy', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
				uuid.New(), "rule "+r.class, s.cfg.Group, l.p.topic, l.p.id, m.pos.Offset, keyOf(m), m.env.ID,
				storable(m.env.Type), storable(m.env.Tenant), r.class, storable(failed.Error()), m.env.Sequence)
		}
		if err != nil || h == nil {
			return err
		}
		return s.takeAway(ctx, t, l, h)
	})
	if err != nil && !errors.Is(err, errTaken) {
		return fmt.Errorf("drop event %s: %w", m.env.ID, err) // errFenced among them
	}
	return nil
}

// faultPolicy is no fault of a log: a rule stopped the partition at an event.
const faultPolicy = "policy"

// stopAt stops a partition before an event. What is queued leaves memory: its
// room is for the other partitions.
func (s *session) stopAt(l *lane, m *message, failed error) {
	s.mu.Lock()
	first := !l.p.stopping
	if first {
		l.p.fault = faultPolicy
	}
	l.p.halt()
	for _, other := range l.p.lanes {
		for _, queued := range other.queue {
			s.drop(queued)
		}
	}
	s.countParked()
	s.mu.Unlock()
	if !first {
		return
	}
	s.cl.PauseFetchPartitions(map[string][]int32{l.p.topic: {l.p.id}})
	s.noteStop(s.ctx, l.p, fmt.Sprintf("its policy stops it at offset %d, event %s: %s", m.pos.Offset, m.env.ID, storable(failed.Error())))
	s.dead.stopped.WithLabelValues(s.cfg.Group, l.p.topic).Inc()
	s.logFailure("partition stopped at an event, by the policy", m, failed, l.attempts)
	s.tell(s.ctx, incident.Incident{
		Part: "consumer", Kind: "partition_stopped", Subject: fmt.Sprintf("%s %s/%d", s.cfg.Group, l.p.topic, l.p.id),
		Text: fmt.Sprintf("group %s handles nothing of %s/%d any more: its policy stops it at offset %d, event %s: %s. Mend the cause and start the group again",
			s.cfg.Group, l.p.topic, l.p.id, m.pos.Offset, m.env.ID, failed),
		Detail: map[string]any{"group": s.cfg.Group, "topic": l.p.topic, "partition": l.p.id, "offset": m.pos.Offset, "event": m.env.ID.String()},
	})
}

// tell records an incident. That it cannot is worth a line and no more.
func (s *session) tell(ctx context.Context, in incident.Incident) {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := incident.Record(ctx, s.deps.DB, in); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "incident not recorded", "error", err)
	}
}
