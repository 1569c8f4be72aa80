package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PartitionState is how a group stands with a partition, as the database has
// it. It says nothing of whether the member still lives: the broker does.
type PartitionState struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Next      *int64     `json:"next"`      // offset; all before it is handled or parked. nil: nothing saved yet
	SavedAt   *time.Time `json:"saved_at"`  // when Next was saved last
	Epoch     int64      `json:"epoch"`     // of the owner
	Member    string     `json:"member"`    // the broker's name of the owner; empty before there was one
	Since     *time.Time `json:"since"`     // the owner took over
	Stopped   string     `json:"stopped"`   // why nothing is done until it is reset; empty if it is done
	Stalled   string     `json:"stalled"`   // what it does not get past, and since when; empty if it does
	Parked    int64      `json:"parked"`    // events
	Keys      int64      `json:"keys_held"` // keys that wait behind one that failed
	Gaps      int64      `json:"keys_gap"`  // those of them that wait for a number that is missing
}

// Partitions lists what a group has read, by topic and partition.
func Partitions(ctx context.Context, pool *pgxpool.Pool, group string) ([]PartitionState, error) {
	rows, err := pool.Query(ctx, `
		SELECT topic, partition, w.next_offset, w.updated_at, coalesce(o.epoch, 0), coalesce(o.member, ''), o.since,
			coalesce(o.stopped, ''), coalesce(o.stalled, ''), coalesce(p.events, 0), coalesce(p.keys, 0),
			coalesce(p.gaps, 0)
		FROM (SELECT * FROM waybill.watermark WHERE group_name = $1) w
		FULL JOIN (SELECT * FROM waybill.owner WHERE group_name = $1) o USING (topic, partition)
		LEFT JOIN (SELECT topic, partition, count(*) AS events, count(DISTINCT key) AS keys,
				count(DISTINCT key) FILTER (WHERE class = 'gap') AS gaps
			FROM waybill.parked WHERE group_name = $1 GROUP BY topic, partition) p USING (topic, partition)
		ORDER BY topic, partition`, group)
	if err != nil {
		return nil, fmt.Errorf("partitions of %s: %w", group, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PartitionState])
	if err != nil {
		return nil, fmt.Errorf("partitions of %s: %w", group, err)
	}
	return all, nil
}
