package projection

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migration is the table of the log.
func Migration() pg.Migration {
	return pg.Migration{Package: "projection", Schema: "analytics", Files: migrations}
}

// LogConfig is what may be set of a log; its zero value works.
type LogConfig struct {
	// KeepDays is how many whole days of events are kept beside today, by their
	// own time; default 30. Keep more than the topics do: an event older than
	// that cannot be told from one that was projected before, and is passed over.
	KeepDays int
	Logger   *slog.Logger // slog.Default() if nil
}

// Log is the table analytics.events: each event once, by its id. It is safe for
// concurrent use.
type Log struct {
	db     *pgxpool.Pool
	cfg    LogConfig
	passed atomic.Int64 // events older than the log
}

// NewLog makes the log on a migrated database.
func NewLog(db *pgxpool.Pool, cfg LogConfig) *Log {
	if cfg.KeepDays <= 0 {
		cfg.KeepDays = 30
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Log{db: db, cfg: cfg}
}

// Operator is the statement after which a transaction sees and writes the rows
// of all tenants.
const Operator = `SELECT set_config('waybill.operator', 'on', true)`

const appendSQL = `WITH added AS (
		INSERT INTO analytics.events (id, tenant, type, subject, sequence, time, source, data)
		SELECT i, t, y, s, n, m, o, d::json
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[])
			AS e (i, t, y, s, n, m, o, d)
		ON CONFLICT (id) DO NOTHING RETURNING id)
	SELECT count(*), CASE WHEN count(*) < cardinality($1) THEN array_agg(id) END FROM added`

// Append adds events in tx and returns those that were not in the log: what is
// derived from them in the same transaction is derived once, however often they
// are delivered. From then on tx acts for all tenants.
//
// Events older than the log keeps are not among them.
func (l *Log) Append(ctx context.Context, tx pgx.Tx, es []Event) ([]Event, error) {
	es = l.young(ctx, es)
	if len(es) == 0 {
		return nil, nil
	}
	c := columnsOf(es)
	var b pgx.Batch
	b.Queue(Operator)
	var n int
	var added []uuid.UUID
	b.Queue(appendSQL, c.id, c.tenant, c.typ, c.subject, c.sequence, c.time, c.source, c.data).
		QueryRow(func(row pgx.Row) error { return row.Scan(&n, &added) })
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("append to the log of events: %w", err)
	}
	if n == len(es) {
		return es, nil
	}
	return among(es, added), nil
}

// among are those of es whose ids were added, each once.
func among(es []Event, added []uuid.UUID) []Event {
	left := make(map[uuid.UUID]bool, len(added))
	for _, id := range added {
		left[id] = true
	}
	var out []Event
	for _, e := range es {
		if left[e.ID] {
			delete(left, e.ID)
			out = append(out, e)
		}
	}
	return out
}

// young leaves out what is older than the log, and tells of the first.
func (l *Log) young(ctx context.Context, es []Event) []Event {
	floor := event.IDTime(daypart.Floor(l.oldest(time.Now())))
	var out []Event
	for i, e := range es {
		old := event.IDTime(e.ID).Before(floor)
		if old && out == nil {
			out = append(make([]Event, 0, len(es)), es[:i]...)
		}
		switch {
		case old && l.passed.Add(1) == 1:
			l.cfg.Logger.WarnContext(ctx, "events older than the log of events keeps are passed over: keep it for longer than the topics are",
				"event", e.ID, "type", e.Type, "time", e.Time, "keep_days", l.cfg.KeepDays)
		case !old && out != nil:
			out = append(out, e)
		}
	}
	if out == nil {
		return es
	}
	return out
}

// oldest is a moment in the first day that is kept.
func (l *Log) oldest(now time.Time) time.Time { return now.AddDate(0, 0, -l.cfg.KeepDays) }

// columns are events the other way round, as unnest takes them.
type columns struct {
	id                                 []uuid.UUID
	tenant, typ, subject, source, data []string
	sequence                           []int64
	time                               []time.Time
}

func columnsOf(es []Event) columns {
	c := columns{
		id: make([]uuid.UUID, len(es)), tenant: make([]string, len(es)), typ: make([]string, len(es)),
		subject: make([]string, len(es)), source: make([]string, len(es)), data: make([]string, len(es)),
		sequence: make([]int64, len(es)), time: make([]time.Time, len(es)),
	}
	for i, e := range es {
		c.id[i], c.tenant[i], c.typ[i], c.subject[i] = e.ID, e.Tenant, e.Type, e.Subject
		c.sequence[i], c.time[i], c.source[i], c.data[i] = e.Sequence, e.Time, e.Source, string(e.Data)
	}
	return c
}
