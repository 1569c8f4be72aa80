package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// saveSQL notes standings. One from before all owners counted is overwritten.
const saveSQL = `INSERT INTO waybill.sequence AS s (group_name, topic, tenant, key, last, reported)
	SELECT $1, $2, * FROM unnest($3::text[], $4::bytea[], $5::bigint[], $6::bigint[]) AS v(tenant, key, last, reported)
	ORDER BY tenant, key
	ON CONFLICT (group_name, topic, tenant, key) DO UPDATE SET seen_at = now(),
		last = CASE WHEN s.seen_at < $7 THEN excluded.last ELSE greatest(s.last, excluded.last) END,
		reported = CASE WHEN s.seen_at < $7 THEN excluded.reported ELSE greatest(s.reported, excluded.reported) END`

// save notes, in the transaction of their effects, what the first n events did,
// and what is missing before them.
func (c *counted) save(ctx context.Context, tx pgx.Tx, n int) error {
	if c == nil {
		return nil
	}
	last := map[numbering]standing{}
	for i, m := range c.ms[:n] {
		if c.moves[i] {
			last[numberingOf(m)] = c.after[i]
		}
	}
	var b pgx.Batch
	if len(last) > 0 {
		var tenants []string
		var keys [][]byte
		var lasts, reported []int64
		for k, st := range last {
			tenants, keys = append(tenants, k.tenant), append(keys, []byte(k.key))
			lasts, reported = append(lasts, st.last), append(reported, st.reported)
		}
		b.Queue(saveSQL, c.s.cfg.Group, c.p.topic, tenants, keys, lasts, reported, c.p.counted)
	}
	for i, m := range c.ms[:n] {
		c.s.queueGaps(&b, m, c.holes[i], c.late[i])
	}
	if b.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("note how far the numbers of keys have come: %w", err)
	}
	return nil
}

// moved tells whether there is anything to save of the first n events.
func (c *counted) moved(n int) bool {
	if c == nil {
		return false
	}
	for i := range c.ms[:n] {
		if c.moves[i] {
			return true
		}
	}
	return false
}

// tell says, once it is committed, what is missing before the first n events.
// They make one incident of a kind.
func (c *counted) tell(n int) {
	if c == nil {
		return
	}
	missing, late := false, false
	for i, m := range c.ms[:n] {
		if len(c.holes[i]) > 0 {
			c.s.tellMissing(m, c.holes[i], "the group goes on without", !missing)
			missing = true
		}
		if c.late[i] {
			c.s.tellLate(m, !late)
			late = true
		}
	}
}

// countedSince is since when the owners of partitions have counted.
func (s *session) countedSince(ctx context.Context, places []place) (map[place]time.Time, error) {
	if s.cfg.Gaps == IgnoreGaps {
		return nil, nil //nolint:nilnil // none counts
	}
	topics, ids := columns(places)
	rows, err := s.deps.DB.Query(ctx, `SELECT topic, partition, counted_since FROM waybill.owner
		WHERE group_name = $1 AND (topic, partition) IN (SELECT * FROM unnest($2::text[], $3::int[])) AND counted_epoch = epoch`,
		s.cfg.Group, topics, ids)
	if err != nil {
		return nil, fmt.Errorf("load since when numbers are counted: %w", err)
	}
	out := map[place]time.Time{}
	var at place
	var since time.Time
	_, err = pgx.ForEachRow(rows, []any{&at.topic, &at.id, &since}, func() error {
		out[at] = since
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load since when numbers are counted: %w", err)
	}
	return out, nil
}
