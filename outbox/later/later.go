// Package later moves events that were added for a moment to come into the
// outbox when that moment is there.
//
// An event is moved in one transaction: it leaves once, whatever dies in
// between, and never before it is due by the database's clock. One process at a
// time moves, in the order of the moments, so that the events of a key leave in
// that order. Late by about a second at most while one runs and the database
// answers; what became due while none ran leaves at once.
package later

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/message"
)

// Config of a mover. Its zero value works.
type Config struct {
	// Messages has the events go to the WAL alone, as the outbox's own
	// Config.Messages does.
	Messages bool
	// Every is how often it looks, a second if zero.
	Every time.Duration
	// AtOnce bounds the events of a transaction, 1,000 if zero.
	AtOnce int

	Logger     *slog.Logger          // nil: slog.Default
	Registerer prometheus.Registerer // nil: no metrics
}

// Mover moves what is due.
type Mover struct {
	db    *pgxpool.Pool
	cfg   Config
	log   *slog.Logger
	moved prometheus.Counter
}

// New makes a mover.
func New(db *pgxpool.Pool, cfg Config) *Mover {
	if cfg.Every <= 0 {
		cfg.Every = time.Second
	}
	if cfg.AtOnce <= 0 {
		cfg.AtOnce = 1000
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	m := &Mover{db: db, cfg: cfg, log: cfg.Logger.With("part", "later")}
	m.moved = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "waybill_outbox_later_moved_total", Help: "Events that were added for later and became due.",
	})
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(m.moved)
	}
	return m
}

// Run moves until ctx ends. A failure is logged and tried again.
func (m *Mover) Run(ctx context.Context) error {
	failing := false
	for {
		n, err := m.Once(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			m.log.ErrorContext(ctx, "move events that are due, trying again", "error", err, "in", m.cfg.Every)
		}
		failing = err != nil
		if err == nil && n == m.cfg.AtOnce { // there is more
			continue
		}
		t := time.NewTimer(m.cfg.Every)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

// Once moves what is due now, at most Config.AtOnce events, and tells how many.
// It is none if another process is at it.
func (m *Mover) Once(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = pgx.BeginFunc(ctx, m.db, func(tx pgx.Tx) error {
		var ours bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('waybill outbox later', 0))`).Scan(&ours); err != nil || !ours {
			return err
		}
		if m.cfg.Messages {
			n, err = m.emit(ctx, tx)
		} else {
			n, err = m.move(ctx, tx)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: move what is due: %w", err)
	}
	m.moved.Add(float64(n))
	return n, nil
}

// columns are those of waybill.outbox_events, in the order of package message.
const columns = `id, topic, subject, source, type, time, tenant, sequence, correlation_id, causation_id, trace_parent, schema_fingerprint, body`

// takeDue takes the first that are due away. What somebody is taking back is
// left to them.
const takeDue = `WITH due AS (DELETE FROM waybill.outbox_later WHERE id IN (
		SELECT id FROM waybill.outbox_later WHERE due_at <= now() ORDER BY due_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)
	RETURNING *) `

func (m *Mover) move(ctx context.Context, tx pgx.Tx) (int, error) {
	done, err := tx.Exec(ctx, takeDue+`INSERT INTO waybill.outbox_events (`+columns+`)
		SELECT `+columns+` FROM due ORDER BY due_at, id`, m.cfg.AtOnce)
	if err != nil || done.RowsAffected() == 0 {
		return 0, err
	}
	_, err = tx.Exec(ctx, `NOTIFY `+outbox.Channel) // for a relay that polls
	return int(done.RowsAffected()), err
}

// emit writes them as logical messages, column for column.
func (m *Mover) emit(ctx context.Context, tx pgx.Tx) (int, error) {
	rows, err := tx.Query(ctx, takeDue+`SELECT `+columns+` FROM due ORDER BY due_at, id`,
		pgx.QueryResultFormats{pgx.BinaryFormatCode}, m.cfg.AtOnce)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var b pgx.Batch
	for rows.Next() {
		content := message.Begin(nil)
		for _, column := range rows.RawValues() {
			content = message.Append(content, column)
		}
		b.Queue(outbox.EmitMessage, content)
	}
	if err := rows.Err(); err != nil || b.Len() == 0 {
		return 0, err
	}
	return b.Len(), tx.SendBatch(ctx, &b).Close()
}
