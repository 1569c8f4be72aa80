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

// parkedShare is the part of the time that may be spent on counting parked
// events. There may be millions of them, when it takes a while.
const parkedShare = 20

// readParked reads of each partition the key that waits longest, and how much
// waits. A table that takes long is read more seldom, and what it last said
// holds meanwhile.
func (m *Monitor) readParked(ctx context.Context, v *survey) error {
	if began := time.Now(); m.parked.rows == nil || !began.Before(m.parked.next) {
		rows, err := m.queryParked(ctx)
		if err != nil {
			m.parked.rows = nil
			return fmt.Errorf("read parked events: %w", err)
		}
		m.parked.rows, m.parked.next = rows, time.Now().Add(parkedShare*time.Since(began))
	}
	for at, b := range m.parked.rows {
		v.group(at.group).parked[at.spot] = b
	}
	return nil
}

// pair is a group and a partition.
type pair struct {
	group string
	spot
}

// parkedRows is what was last read of the parked events.
type parkedRows struct {
	rows map[pair]*Blocked
	next time.Time // to be read again
}

func (m *Monitor) queryParked(ctx context.Context) (map[pair]*Blocked, error) {
	out := map[pair]*Blocked{}
	rows, err := m.deps.DB.Query(ctx, `SELECT h.group_name, h.topic, h.partition, key, "offset", error, attempts, parked_at, keys, events
		FROM (SELECT DISTINCT ON (group_name, topic, partition) *, count(*) OVER (PARTITION BY group_name, topic, partition) AS keys
			FROM waybill.parked WHERE state <> 'waiting' AND ($1::text[] IS NULL OR group_name = ANY($1))
			ORDER BY group_name, topic, partition, seq) h
		JOIN (SELECT group_name, topic, partition, count(*) AS events FROM waybill.parked
			WHERE $1::text[] IS NULL OR group_name = ANY($1) GROUP BY 1, 2, 3) c
			ON (c.group_name, c.topic, c.partition) = (h.group_name, h.topic, h.partition)
		LIMIT $2`, m.cfg.Groups, m.cfg.MaxPartitions)
	if notThere(err) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	var at pair
	var key []byte
	var b Blocked
	into := []any{&at.group, &at.topic, &at.partition, &key, &b.Offset, &b.Error, &b.Attempts, &b.Since, &b.Keys, &b.Events}
	_, err = pgx.ForEachRow(rows, into, func() error {
		one := b
		one.Key, one.Error = printable(string(key), 128), printable(b.Error, 512)
		out[at] = &one
		return nil
	})
	if err != nil && !notThere(err) {
		return nil, err
	}
	return out, nil
}

// notThere tells that the tables of groups are not, as where a database serves
// something else: then no group keeps its place in it.
func notThere(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000")
}
