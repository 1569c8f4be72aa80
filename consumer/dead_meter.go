package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/incident"
)

// deadMeter is a group's figures of what is parked and dead.
type deadMeter struct {
	deaths  *prometheus.CounterVec
	copies  *prometheus.CounterVec
	failed  *prometheus.CounterVec
	stopped *prometheus.CounterVec
	events  *prometheus.GaugeVec
}

func newDeadMeter(r prometheus.Registerer, group string) *deadMeter {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waybill_consumer_" + name, Help: help},
			append([]string{"group"}, labels...)))
	}
	m := &deadMeter{
		deaths:  counter("dead_total", "Events that their policy gave up, by class of error.", "class"),
		copies:  counter("dead_copies_total", "Copies of dead events written to their topic."),
		failed:  counter("dead_copy_failures_total", "Copies of dead events that the broker did not take."),
		stopped: counter("policy_stops_total", "Partitions stopped at an event by the policy.", "topic"),
		events: register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "waybill_consumer_parked_events",
			Help: "Events of the whole group in the parked table, by state: retrying, waiting, dead or redrive; all but the waiting are one a key. From the database, by one member; absent elsewhere.",
		}, []string{"group", "state"})),
	}
	m.copies.WithLabelValues(group)
	m.failed.WithLabelValues(group)
	return m
}

const countDeadEvery = 15 * time.Second

// countDead keeps the gauge of the whole group. The member that has the first
// partition of the first topic does, so that nothing is counted twice.
func (s *session) countDead(ctx context.Context) {
	defer s.forgetCounts()
	var last time.Time // zero: nothing is told
	every(ctx, time.Second, func(ctx context.Context) {
		ours := s.counts()
		if ours && time.Since(last) < countDeadEvery {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, flushWithin)
		defer cancel()
		switch {
		case ours && s.countNow(ctx) == nil:
			last = time.Now()
			s.trimActions(ctx)
			s.trimGaps(ctx)
		case !last.IsZero():
			s.forgetCounts() // what is not known is not told
			last = time.Time{}
		}
	})
}

// counts tells whether this member counts for the group.
func (s *session) counts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[place{s.topics()[0], 0}] != nil
}

var parkedStates = []string{stateRetrying, stateWaiting, stateDead, stateRedrive}

func (s *session) forgetCounts() {
	for _, state := range parkedStates {
		s.dead.events.DeleteLabelValues(s.cfg.Group, state)
	}
}

func (s *session) countNow(ctx context.Context) error {
	rows, err := s.deps.DB.Query(ctx, `SELECT state, count(*) FROM waybill.parked WHERE group_name = $1 GROUP BY state`, s.cfg.Group)
	if err != nil {
		return err
	}
	found := map[string]int64{}
	var state string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&state, &n}, func() error { found[state] = n; return nil }); err != nil {
		return err
	}
	for _, state := range parkedStates {
		s.dead.events.WithLabelValues(s.cfg.Group, state).Set(float64(found[state]))
	}
	return nil
}

// tellDeath records the first death of a cause.
func (s *session) tellDeath(ctx context.Context, d *death) {
	if !d.first {
		return
	}
	s.tell(ctx, incident.Incident{
		Part: "consumer", Kind: "dead_letter", Subject: s.cfg.Group + " " + d.causeID,
		Text: fmt.Sprintf("group %s gave up event of type %s on %s, the first of this cause: %s. Its key waits. Mend the cause, then waybill dlq redrive --group %s --cause %s",
			s.cfg.Group, d.typ, d.rec.Topic, d.reason, s.cfg.Group, d.causeID),
		Detail: map[string]any{
			"group": s.cfg.Group, "topic": d.rec.Topic, "partition": d.rec.Partition, "offset": d.rec.Offset,
			"type": d.typ, "class": d.class, "cause": d.cause, "cause_id": d.causeID,
		},
	})
}
