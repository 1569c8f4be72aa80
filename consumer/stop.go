package consumer

import (
	"context"
	"fmt"

	"github.com/waybillhq/waybill/incident"
)

// stop lets nothing be done with a partition whose log is not the one that the
// group has read, and says so wherever somebody may look.
func (s *session) stop(ctx context.Context, p *partition, fault string, was position, b bounds) {
	p.fault = fault
	p.halt()
	what := "the topic was deleted and made again under the same name"
	if fault == faultBeyondEnd {
		what = fmt.Sprintf("the log ends at offset %d and the group was at %d: it was cut back or restored", b.end, was.next)
	}
	s.meter.faults.WithLabelValues(s.cfg.Group, p.topic, fault).Inc()
	s.log.ErrorContext(ctx, "partition stopped: "+what, "fault", fault, "topic", p.topic, "partition", p.id,
		"saved", was.next, "log_start", b.start, "log_end", b.end, "next", s.resetHint(p.topic))
	s.record(ctx, "partition_stopped", p.place, what+". Nothing is handled until "+s.resetHint(p.topic))
	s.noteStop(ctx, p, what)
}

// noteStop has the owner's row tell why nothing is done.
func (s *session) noteStop(ctx context.Context, p *partition, what string) {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if _, err := s.deps.DB.Exec(ctx, `UPDATE waybill.owner SET stopped = $5
		WHERE group_name = $1 AND topic = $2 AND partition = $3 AND epoch = $4`,
		s.cfg.Group, p.topic, p.id, p.owner, what); err != nil {
		s.log.WarnContext(ctx, "that a partition is stopped is not in the database", "error", err)
	}
}

func (s *session) resetHint(topic string) string {
	return fmt.Sprintf("waybill groups reset %s --topic %s --stopped --to beginning (or now, an offset, a time); --keep-inbox passes over what was handled",
		s.cfg.Group, topic)
}

// record notes an incident of a partition.
func (s *session) record(ctx context.Context, kind string, at place, text string) {
	s.tell(ctx, incident.Incident{
		Part: "consumer", Kind: kind, Subject: fmt.Sprintf("%s %s/%d", s.cfg.Group, at.topic, at.id), Text: text,
		Detail: map[string]any{"group": s.cfg.Group, "topic": at.topic, "partition": at.id},
	})
}

// seekReset begins anew once a partition that is stopped has been reset.
func (s *session) seekReset(ctx context.Context) {
	s.mu.Lock()
	stopped := map[place]int64{}
	for at, p := range s.parts {
		if p.fault != faultNone {
			stopped[at] = p.owner
		}
	}
	s.mu.Unlock()
	for at, owner := range stopped {
		ctx, cancel := context.WithTimeout(ctx, flushWithin)
		var gone bool
		err := s.deps.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.owner
			WHERE group_name = $1 AND topic = $2 AND partition = $3 AND epoch <> $4)`, s.cfg.Group, at.topic, at.id, owner).Scan(&gone)
		cancel()
		if err == nil && gone {
			s.log.InfoContext(ctx, "joining the group again: a stopped partition was reset", "topic", at.topic, "partition", at.id)
			s.restart()
			return
		}
	}
}
