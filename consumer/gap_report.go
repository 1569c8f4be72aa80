package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/incident"
)

// Kinds of what the metric of gaps counts.
const (
	gapHeld    = "held"    // events that began to wait for a number before theirs
	gapFilled  = "filled"  // events that were waited for and came
	gapMissing = "missing" // numbers told to be missing
	gapLate    = "late"    // events behind a higher number of their key
)

// queueGaps has what is missing before m, or that it is late, written down.
func (s *session) queueGaps(b *pgx.Batch, m *message, missing []span, late bool) {
	if late {
		s.queueGap(b, m, gapLate, span{m.env.Sequence, m.env.Sequence})
	}
	for _, told := range missing {
		s.queueGap(b, m, gapMissing, told)
	}
}

func (s *session) queueGap(b *pgx.Batch, m *message, kind string, told span) {
	b.Queue(`INSERT INTO waybill.gap (kind, group_name, topic, partition, "offset", event_id, tenant, key, first, last)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, kind, s.cfg.Group, m.pos.Topic, m.pos.Partition, m.pos.Offset,
		m.env.ID, storable(m.env.Tenant), keyOf(m), told.first, told.last)
}

// noteLate writes down, with its death, that an event came too late.
func (s *session) noteLate(ctx context.Context, tx pgx.Tx, m *message) error {
	var b pgx.Batch
	s.queueGaps(&b, m, nil, true)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("note a late event: %w", err)
	}
	return nil
}

func (s *session) tellHeld(m *message, gap *gapError) {
	s.meter.gap(s.cfg.Group, m.pos.Topic, gapHeld, 1)
	s.log.Warn("event held: numbers of its key are missing before it", gapAttrs(m, tellSpans(gap.missing))...)
}

func (s *session) tellMissing(m *message, missing []span, next string, record bool) {
	s.meter.gap(s.cfg.Group, m.pos.Topic, gapMissing, countOf(missing))
	what := tellSpans(missing)
	s.log.Error("numbers of a key are missing", append(gapAttrs(m, what), "next", next)...)
	if !record {
		return
	}
	s.tellGap(m, "sequence_gap", fmt.Sprintf("group %s has not had number %s of key %q on %s, and number %d came: %s. All of it: waybill groups gaps %s",
		s.cfg.Group, what, clip(string(m.rec.Key)), m.pos.Topic, m.env.Sequence, next, s.cfg.Group), what)
}

func (s *session) tellLate(m *message, record bool) {
	s.meter.gap(s.cfg.Group, m.pos.Topic, gapLate, 1)
	s.log.Error("event out of order: a higher number of its key was handled before", gapAttrs(m, "")...)
	if !record {
		return
	}
	s.tellGap(m, "sequence_late", fmt.Sprintf("group %s had handled a higher number of key %q on %s when number %d came. All of it: waybill groups gaps %s",
		s.cfg.Group, clip(string(m.rec.Key)), m.pos.Topic, m.env.Sequence, s.cfg.Group), "")
}

// tellGap records an incident of a partition: keys are without end.
func (s *session) tellGap(m *message, kind, text, missing string) {
	s.tell(s.ctx, incident.Incident{
		Part: "consumer", Kind: kind, Subject: fmt.Sprintf("%s %s/%d", s.cfg.Group, m.pos.Topic, m.pos.Partition), Text: text,
		Detail: map[string]any{
			"group": s.cfg.Group, "topic": m.pos.Topic, "partition": m.pos.Partition, "offset": m.pos.Offset,
			"event": m.env.ID.String(), "sequence": m.env.Sequence, "missing": missing,
		},
	})
}

func gapAttrs(m *message, missing string) []any {
	out := []any{
		"topic", m.pos.Topic, "partition", m.pos.Partition, "offset", m.pos.Offset, "key", string(m.rec.Key),
		"event", m.env.ID, "type", m.env.Type, "number", m.env.Sequence,
	}
	if missing != "" {
		out = append(out, "missing", missing)
	}
	return out
}

// trimGaps keeps waybill.gap within the bounds of waybill.dead_action, a part at
// a time.
func (s *session) trimGaps(ctx context.Context) {
	_, err := s.deps.DB.Exec(ctx, `DELETE FROM waybill.gap WHERE id IN (
		SELECT id FROM waybill.gap
		WHERE found_at < now() - interval '`+keepActions+`' OR id <= (SELECT max(id) FROM waybill.gap) - $1
		ORDER BY id LIMIT $2)`, keepActionsRows, trimAtOnce)
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "old gaps are not forgotten", "error", err)
	}
}

// pruneSequences forgets keys of which nothing was heard for as long as the
// inbox is kept: what comes of them then is taken as it is.
func (s *session) pruneSequences(ctx context.Context) error {
	if !s.counts() {
		return nil // another member does
	}
	for {
		tag, err := s.deps.DB.Exec(ctx, `DELETE FROM waybill.sequence WHERE ctid = ANY(ARRAY(
			SELECT ctid FROM waybill.sequence WHERE group_name = $1 AND seen_at < now() - $2::interval LIMIT $3))
			AND seen_at < now() - $2::interval`, s.cfg.Group, s.cfg.InboxKeep, pruneAtOnce)
		if err != nil {
			return fmt.Errorf("prune the numbers of keys: %w", err)
		}
		if tag.RowsAffected() < pruneAtOnce {
			return nil
		}
	}
}
