package cdc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Phases of a table's snapshot.
const (
	phaseWaiting  = "waiting"
	phaseReading  = "reading"
	phaseSweeping = "sweeping"
	phaseDone     = "done"
)

// state is a table's row in waybill.cdc_tables, which outlives any process.
type state struct {
	Name       string
	Topic      string
	TopicID    string
	Relation   int64
	KeyColumns []string
	Columns    []string
	Attributes int
	Identity   string
	Error      *string
	Requested  int64
	Served     int64
	Reason     string
	Sweep      bool
	Phase      string
	LastKey    []string
	RowsRead   int64
	RowsTotal  *int64
	Deleted    int64
	SweepTo    map[int32]int64
	StartedAt  *time.Time
	FinishedAt *time.Time
}

// due tells whether a snapshot is to be made, or to be gone on with.
func (s *state) due() bool {
	return s.Error == nil && (s.Served < s.Requested || s.Phase != phaseDone)
}

const stateColumns = `name, topic, topic_id, relation, key_columns, columns, attributes, identity, error, requested, served, reason, sweep,
	phase, last_key, rows_read, rows_total, deleted, sweep_to, started_at, finished_at`

func (s *state) scan() []any {
	return []any{
		&s.Name, &s.Topic, &s.TopicID, &s.Relation, &s.KeyColumns, &s.Columns, &s.Attributes, &s.Identity, &s.Error, &s.Requested, &s.Served,
		&s.Reason, &s.Sweep, &s.Phase, &s.LastKey, &s.RowsRead, &s.RowsTotal, &s.Deleted, &s.SweepTo, &s.StartedAt, &s.FinishedAt,
	}
}

func loadStates(ctx context.Context, db querier, slot string) (map[string]*state, error) {
	rows, err := db.Query(ctx, `SELECT `+stateColumns+` FROM waybill.cdc_tables WHERE slot = $1`, slot)
	if err != nil {
		return nil, fmt.Errorf("read the state of tables: %w", err)
	}
	states := map[string]*state{}
	var s state
	_, err = pgx.ForEachRow(rows, s.scan(), func() error {
		one := s
		states[s.Name] = &one
		s = state{} // its slices and pointers are one's now
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the state of tables: %w", err)
	}
	return states, nil
}

// keep writes what is known of a table, and asks for a snapshot if there is a
// reason for one.
func keep(ctx context.Context, db querier, slot string, s *state, reason string, sweep bool) error {
	_, err := db.Exec(ctx, `INSERT INTO waybill.cdc_tables AS t
			(slot, name, topic, topic_id, relation, key_columns, columns, attributes, identity, error, reason)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (slot, name) DO UPDATE SET topic = excluded.topic, topic_id = excluded.topic_id,
			relation = excluded.relation, key_columns = excluded.key_columns, columns = excluded.columns,
			attributes = excluded.attributes, identity = excluded.identity, error = excluded.error,
			requested = CASE WHEN excluded.reason = '' THEN t.requested ELSE t.served + 1 END,
			reason = coalesce(nullif(excluded.reason, ''), t.reason), sweep = t.sweep OR $12
		WHERE excluded.reason <> '' OR (t.topic, t.topic_id, t.relation, t.key_columns, t.columns, t.attributes, t.identity, t.error)
			IS DISTINCT FROM (excluded.topic, excluded.topic_id, excluded.relation, excluded.key_columns, excluded.columns,
				excluded.attributes, excluded.identity, excluded.error)`,
		slot, s.Name, s.Topic, s.TopicID, s.Relation, s.KeyColumns, s.Columns, s.Attributes, s.Identity, s.Error, reason, sweep)
	if err != nil {
		return fmt.Errorf("keep the state of %s: %w", s.Name, err)
	}
	return nil
}

// request asks for a snapshot of a table, of all tables if name is empty. One
// that was asked for and has not begun will do.
func request(ctx context.Context, db querier, slot, name, reason string) (tables int64, err error) {
	tag, err := db.Exec(ctx, `UPDATE waybill.cdc_tables SET requested = served + 1, sweep = true, reason = $3
		WHERE slot = $1 AND (name = $2 OR $2 = '')`, slot, name, reason)
	if err != nil {
		return 0, fmt.Errorf("ask for a snapshot: %w", err)
	}
	return tag.RowsAffected(), nil
}

// begin notes that the snapshot in s begins. It serves whoever has asked so far
// and nobody who comes later.
func (s *state) begin(ctx context.Context, db querier, slot string, total *int64) error {
	s.Phase, s.LastKey, s.RowsRead, s.RowsTotal, s.Deleted, s.SweepTo = phaseReading, nil, 0, total, 0, nil
	err := db.QueryRow(ctx, `UPDATE waybill.cdc_tables SET served = requested, phase = 'reading', last_key = NULL, rows_read = 0,
		rows_total = $3, deleted = 0, sweep_to = NULL, started_at = now(), finished_at = NULL
		WHERE slot = $1 AND name = $2 AND error IS NULL RETURNING requested, served, sweep, reason`,
		slot, s.Name, total).Scan(&s.Requested, &s.Served, &s.Sweep, &s.Reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return errSuperseded
	}
	if err != nil {
		return fmt.Errorf("begin the snapshot of %s: %w", s.Name, err)
	}
	return nil
}

// sweepTo notes where the topic ends.
func (s *state) sweepTo(ctx context.Context, db querier, slot string, to map[int32]int64) error {
	s.SweepTo = to
	return s.write(ctx, db, slot, `sweep_to = $4`, to)
}

// progress notes that all rows up to the last key are published.
func (s *state) progress(ctx context.Context, db querier, slot string) error {
	return s.write(ctx, db, slot, `last_key = $4, rows_read = $5`, s.LastKey, s.RowsRead)
}

func (s *state) sweeping(ctx context.Context, db querier, slot string) error {
	s.Phase = phaseSweeping
	return s.write(ctx, db, slot, `phase = 'sweeping', rows_total = rows_read`)
}

func (s *state) swept(ctx context.Context, db querier, slot string, more int64) error {
	s.Deleted += more
	return s.write(ctx, db, slot, `deleted = $4`, s.Deleted)
}

// finish ends the snapshot.
func (s *state) finish(ctx context.Context, db querier, slot string) error {
	s.Phase = phaseDone
	return s.write(ctx, db, slot, `phase = 'done', rows_total = rows_read, sweep = false, finished_at = now()`)
}

// errSuperseded ends a snapshot that another one was asked for after, or whose
// table is no longer published so.
var errSuperseded = errors.New("snapshot superseded")

// write sets columns of the row, if it is still that of the same snapshot and
// no other one was asked for. A process that lost the slot without noticing
// must not speak for its successor.
func (s *state) write(ctx context.Context, db querier, slot, set string, args ...any) error {
	tag, err := db.Exec(ctx, `UPDATE waybill.cdc_tables SET `+set+`
		WHERE slot = $1 AND name = $2 AND served = $3 AND requested = served AND error IS NULL`,
		append([]any{slot, s.Name, s.Served}, args...)...)
	switch {
	case err != nil:
		return fmt.Errorf("note the snapshot of %s: %w", s.Name, err)
	case tag.RowsAffected() == 0:
		return errSuperseded
	}
	return nil
}

func sorted(states map[string]*state) []*state {
	return slices.SortedFunc(maps.Values(states), func(a, b *state) int { return strings.Compare(a.Name, b.Name) })
}
