package consumer

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// numbering is what is numbered one by one, on a topic.
type numbering struct{ tenant, key string }

func numberingOf(m *message) numbering {
	return numbering{storable(m.env.Tenant), string(m.rec.Key)}
}

// standing is how far a numbering has come.
type standing struct {
	last     int64
	reported int64 // what is missing up to here has been told
}

// counted is what a trial's events do to the numbers of their keys.
type counted struct {
	s     *session
	p     *partition
	ms    []*message
	after []standing // each event, where it moves anything
	moves []bool
	holes [][]span // found at each event, to be told once it is handled
	late  []bool
}

// lastsSQL reads standings, unless they are from before all owners of the
// partition counted. It comes after the claim, with a snapshot of its own: what
// an owner before us still had open has ended by then. Each key is looked up by
// itself: as a plain join the planner, which knows a new table for an empty one,
// reads all keys of the topic.
const lastsSQL = `SELECT k.tenant, k.key, s.last, s.reported FROM unnest($3::text[], $4::bytea[]) AS k(tenant, key),
	LATERAL (SELECT last, reported FROM waybill.sequence
		WHERE group_name = $1 AND topic = $2 AND tenant = k.tenant AND key = k.key AND seen_at >= $5 LIMIT 1) s`

// queueLasts asks for the standings of the messages' numberings with the claim.
func (s *session) queueLasts(b *pgx.Batch, p *partition, ms []*message) map[numbering]standing {
	if s.cfg.Gaps == IgnoreGaps {
		return nil
	}
	var tenants []string
	var keys [][]byte
	lasts := map[numbering]standing{}
	asked := map[numbering]bool{}
	for _, m := range ms {
		if n := numberingOf(m); m.env.Sequence > 0 && !asked[n] {
			asked[n] = true
			tenants, keys = append(tenants, n.tenant), append(keys, []byte(n.key))
		}
	}
	if len(keys) == 0 {
		return lasts
	}
	b.Queue(lastsSQL, s.cfg.Group, p.topic, tenants, keys, p.counted).Query(func(rows pgx.Rows) error {
		var n numbering
		var key []byte
		var st standing
		_, err := pgx.ForEachRow(rows, []any{&n.tenant, &key, &st.last, &st.reported}, func() error {
			n.key = string(key)
			lasts[n] = st
			return nil
		})
		return err
	})
	return lasts
}

// count holds the numbers of a trial's events against those of their keys,
// before any handler runs. The error is the event's that must wait, or came too
// late: t.bad.
func (s *session) count(ctx context.Context, tx pgx.Tx, p *partition, t *trial, fresh map[uuid.UUID]bool, lasts map[numbering]standing) (*counted, error) {
	if lasts == nil {
		return nil, nil //nolint:nilnil // a group that does not look
	}
	c := &counted{
		s: s, p: p, ms: t.ms, after: make([]standing, len(t.ms)), moves: make([]bool, len(t.ms)),
		holes: make([][]span, len(t.ms)), late: make([]bool, len(t.ms)),
	}
	for i, m := range t.ms {
		if m.env.Sequence <= 0 {
			continue
		}
		n := numberingOf(m)
		was, known := lasts[n]
		now, err := c.step(ctx, tx, i, was, known, fresh[m.env.ID])
		if err != nil {
			t.bad = i
			return nil, err
		}
		if now != was || !known {
			c.after[i], c.moves[i] = now, true
			lasts[n] = now
		}
	}
	return c, nil
}

// step is what one event does to its key's standing. One that was handled
// before proves that the group has come so far.
func (c *counted) step(ctx context.Context, tx pgx.Tx, i int, was standing, known, fresh bool) (standing, error) {
	m := c.ms[i]
	now := standing{max(was.last, m.env.Sequence), was.reported}
	switch {
	case !known, !fresh && !m.route.pass, m.env.Sequence == was.last, m.env.Sequence == was.last+1:
		return now, nil
	case m.env.Sequence < was.last:
		if m.route.pass {
			return now, nil // it has no effect, and may have been passed before
		}
		if c.s.cfg.Gaps.holds() && !m.holeOK {
			return was, &lateError{was.last, m.env.Sequence}
		}
		c.late[i] = !m.holeOK // it was told when it died
		return now, nil
	}
	missing, err := c.s.missing(ctx, tx, m, was.last)
	if err != nil || len(missing) == 0 {
		return now, err
	}
	untold := above(missing, was.reported)
	if c.s.cfg.Gaps.holds() && !m.holeOK {
		return was, &gapError{was.last, m.env.Sequence, untold, missing}
	}
	c.holes[i] = untold
	now.reported = max(was.reported, m.env.Sequence-1)
	return now, nil
}

// above is what of the spans is higher than n.
func above(spans []span, n int64) (out []span) {
	for _, s := range spans {
		if s.first = max(s.first, n+1); s.first <= s.last {
			out = append(out, s)
		}
	}
	return out
}
