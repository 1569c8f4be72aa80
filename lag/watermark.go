package lag

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// mark is how far the database says a group has come.
type mark struct {
	topicID [16]byte
	next    int64
	saved   time.Time
}

// readDatabase reads the watermarks and parked events of all groups.
func (m *Monitor) readDatabase(ctx context.Context, v *survey) {
	if m.deps.DB == nil {
		return
	}
	err := m.readMarks(ctx, v)
	if err == nil {
		err = m.readParked(ctx, v)
	}
	if err != nil {
		v.database = fmt.Errorf("database: %w", err)
	}
}

func (m *Monitor) readMarks(ctx context.Context, v *survey) error {
	rows, err := m.deps.DB.Query(ctx, `SELECT group_name, topic, partition, topic_id, next_offset, updated_at
		FROM waybill.watermark WHERE $1::text[] IS NULL OR group_name = ANY($1) LIMIT $2`,
		m.cfg.Groups, m.cfg.MaxPartitions)
	if notThere(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read watermarks: %w", err)
	}
	var name string
	var at spot
	var w mark
	_, err = pgx.ForEachRow(rows, []any{&name, &at.topic, &at.partition, &w.topicID, &w.next, &w.saved}, func() error {
		g := v.group(name)
		if g.marks == nil {
			g.marks, g.ours = map[spot]mark{}, map[string]bool{}
		}
		g.marks[at], g.ours[at.topic], g.reads[at.topic] = w, true, true
		return nil
	})
	if err != nil && !notThere(err) {
		return fmt.Errorf("read watermarks: %w", err)
	}
	return nil
}

// readParked reads of each partition the key that waits longest. The table is
// as long as what has failed, and its index begins with these columns.
func (m *Monitor) readParked(ctx context.Context, v *survey) error {
	rows, err := m.deps.DB.Query(ctx, `SELECT DISTINCT ON (group_name, topic, partition)
			group_name, topic, partition, key, "offset", error, attempts, parked_at,
			count(*) OVER here, count(*) FILTER (WHERE state <> 'waiting') OVER here
		FROM waybill.parked WHERE $1::text[] IS NULL OR group_name = ANY($1)
		WINDOW here AS (PARTITION BY group_name, topic, partition)
		ORDER BY group_name, topic, partition, seq LIMIT $2`, m.cfg.Groups, m.cfg.MaxPartitions)
	if notThere(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read parked events: %w", err)
	}
	var name string
	var at spot
	var key []byte
	var b Blocked
	into := []any{&name, &at.topic, &at.partition, &key, &b.Offset, &b.Error, &b.Attempts, &b.Since, &b.Events, &b.Keys}
	_, err = pgx.ForEachRow(rows, into, func() error {
		one := b
		one.Key, one.Error = printable(string(key), 128), printable(b.Error, 512)
		v.group(name).parked[at] = &one
		return nil
	})
	if err != nil && !notThere(err) {
		return fmt.Errorf("read parked events: %w", err)
	}
	return nil
}

// notThere tells that the tables of groups are not, as where a database serves
// something else: then no group keeps its place in it.
func notThere(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000")
}
