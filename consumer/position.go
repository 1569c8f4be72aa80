package consumer

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// position is how far a group has come on a partition.
type position struct {
	place
	owner   int64 // epoch of the assignment that came so far
	topicID [16]byte
	epoch   int32
	next    int64
	reached int64 // the farthest next there was
}

// positions reads what is saved of the given partitions.
func (s *session) positions(ctx context.Context, places []place) (map[place]position, error) {
	topics, ids := columns(places)
	rows, err := s.deps.DB.Query(ctx, `SELECT topic, partition, topic_id, leader_epoch, next_offset, reached
		FROM waybill.watermark
		WHERE group_name = $1 AND (topic, partition) IN (SELECT * FROM unnest($2::text[], $3::int[]))`,
		s.cfg.Group, topics, ids)
	if err != nil {
		return nil, fmt.Errorf("load watermarks: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p position, err error) {
		err = row.Scan(&p.topic, &p.id, &p.topicID, &p.epoch, &p.next, &p.reached)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("load watermarks: %w", err)
	}
	out := make(map[place]position, len(all))
	for _, p := range all {
		out[p.place] = p
	}
	return out, nil
}

// settleNow saves the ends of all partitions of topics where the group has
// never been. Whoever comes first decides, for all members: a partition without
// a position then is one that the topic got later, and all of it is new.
func (s *session) settleNow(ctx context.Context, there map[place]bounds, lacking map[string]error) error {
	var topics []string
	for at := range there {
		topics = append(topics, at.topic)
	}
	rows, err := s.deps.DB.Query(ctx, `SELECT DISTINCT topic FROM waybill.watermark
		WHERE group_name = $1 AND topic = ANY($2)`, s.cfg.Group, topics)
	if err != nil {
		return fmt.Errorf("load topics read before: %w", err)
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("load topics read before: %w", err)
	}
	var all []position
	for at, b := range there {
		if !slices.Contains(known, at.topic) {
			if err := lacking[at.topic]; err != nil {
				return err
			}
			all = append(all, position{at, 0, b.topicID, -1, b.end, b.end})
		}
	}
	_, err = s.deps.DB.Exec(ctx, `INSERT INTO waybill.watermark
			(group_name, topic, partition, topic_id, leader_epoch, next_offset, reached)
		SELECT $1, topic, partition, topic_id, leader_epoch, next_offset, next_offset FROM `+positionRows+`
		ORDER BY topic, partition ON CONFLICT DO NOTHING`, positionArgs(s.cfg.Group, all)...)
	if err != nil {
		return fmt.Errorf("save where to begin: %w", err)
	}
	return nil
}

// save writes positions in one statement, as far as their partitions are still
// ours, and returns those. It may move one back: a log that was cut back begins
// again, and what is repeated the inbox knows.
func (s *session) save(ctx context.Context, all []position) ([]position, error) {
	// Ordered, so that two members that both think they own some partitions do
	// not deadlock.
	rows, err := s.deps.DB.Query(ctx, `WITH ours AS MATERIALIZED (
			SELECT p.* FROM waybill.owner o JOIN `+positionRows+` USING (topic, partition)
			WHERE o.group_name = $1 AND o.epoch = p.owner ORDER BY o.topic, o.partition FOR SHARE OF o)
		INSERT INTO waybill.watermark AS w (group_name, topic, partition, topic_id, leader_epoch, next_offset, reached)
		SELECT $1, topic, partition, topic_id, leader_epoch, next_offset, next_offset FROM ours
		ON CONFLICT (group_name, topic, partition) DO UPDATE SET topic_id = excluded.topic_id,
			leader_epoch = excluded.leader_epoch, next_offset = excluded.next_offset, updated_at = now(),
			reached = greatest(excluded.next_offset, w.reached)
		RETURNING topic, partition`, positionArgs(s.cfg.Group, all)...)
	if err != nil {
		return nil, fmt.Errorf("save watermarks: %w", err)
	}
	ours := make(map[place]bool, len(all))
	var at place
	_, err = pgx.ForEachRow(rows, []any{&at.topic, &at.id}, func() error {
		ours[at] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("save watermarks: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(p position) bool { return !ours[p.place] }), nil
}

const positionRows = `unnest($2::text[], $3::int[], $4::bigint[], $5::uuid[], $6::int[], $7::bigint[])
	AS p(topic, partition, owner, topic_id, leader_epoch, next_offset)`

func positionArgs(group string, all []position) []any {
	var topics []string
	var ids, epochs []int32
	var topicIDs [][16]byte
	var owners, next []int64
	for _, p := range all {
		topics, ids, topicIDs = append(topics, p.topic), append(ids, p.id), append(topicIDs, p.topicID)
		owners, epochs, next = append(owners, p.owner), append(epochs, p.epoch), append(next, p.next)
	}
	return []any{group, topics, ids, owners, topicIDs, epochs, next}
}
