package consumer

import (
	"context"
	"fmt"
	"time"
)

// stallLooks is how often the watchdog looks while a stall becomes one.
const stallLooks = 4

// progress is what the watchdog knows of a partition.
type progress struct {
	next  int64     // position at the last look that found it moved
	since time.Time // of that look
	stall string    // what was told, "" for nothing
}

// lookForStalls tells partitions that have records and do not get past the
// first of them, and for which nothing accounts that is told elsewhere: not
// infrastructure, not a parked key, not a partition that is stopped. It is the
// net under all that was thought of.
func (s *session) lookForStalls(ctx context.Context) {
	now, down := time.Now(), s.down.Load()
	changed := map[*partition]string{}
	stalled := 0
	s.mu.Lock()
	for _, p := range s.parts {
		stall := ""
		switch {
		case p.stopping, down, p.tracker.next != p.seen.next, len(p.tracker.open) == 0, p.seen.since.IsZero():
			p.seen.next, p.seen.since = p.tracker.next, now
		case now.Sub(p.seen.since) >= s.cfg.StallAfter:
			stall = p.holdUp()
		}
		if stall != "" {
			stalled++
		}
		if (stall == "") != (p.seen.stall == "") {
			changed[p] = stall
			p.seen.stall = stall
		}
	}
	s.mu.Unlock()
	s.meter.stalled.Set(float64(stalled))
	for p, stall := range changed {
		s.tellStall(ctx, p, stall)
	}
}

// holdUp says what a partition does not get past. A lane that waits for
// infrastructure is nothing to tell.
func (p *partition) holdUp() string {
	first := p.tracker.open[0]
	since := p.seen.since.UTC().Format(time.RFC3339)
	for _, l := range p.lanes {
		if len(l.queue) == 0 || l.queue[0].mark != first {
			continue
		}
		if l.waits > 0 && l.attempts == 0 {
			return ""
		}
		m := l.queue[0]
		return fmt.Sprintf("offset %d since %s: key %q, event %s of type %s, %d failed attempts", first.offset, since,
			clip(string(m.rec.Key)), m.env.ID, clip(m.env.Type), l.attempts)
	}
	return fmt.Sprintf("offset %d since %s: no key has it", first.offset, since)
}

// clip bounds what others named.
func clip(text string) string {
	const limit = 200
	if len(text) > limit {
		return text[:limit] + "…"
	}
	return text
}

// tellStall tells that a stall has begun, or is over.
func (s *session) tellStall(ctx context.Context, p *partition, stall string) {
	if stall == "" {
		s.log.InfoContext(ctx, "partition goes on", "topic", p.topic, "partition", p.id)
	} else {
		s.log.ErrorContext(ctx, "partition makes no progress", "topic", p.topic, "partition", p.id, "at", stall)
	}
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if _, err := s.deps.DB.Exec(ctx, `UPDATE waybill.owner SET stalled = $5
		WHERE group_name = $1 AND topic = $2 AND partition = $3 AND epoch = $4`,
		s.cfg.Group, p.topic, p.id, p.owner, storable(stall)); err != nil {
		s.log.WarnContext(ctx, "a stall, or its end, is not in the database", "error", err)
	}
}
