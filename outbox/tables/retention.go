package tables

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox/archive"
)

// DefaultKeepDays is how many days events stay in the outbox after the end of
// their own.
const DefaultKeepDays = 3

// RetentionConfig is what may be set. The zero value keeps everything.
type RetentionConfig struct {
	// KeepDays is how many whole days lie between an event's day and the day it
	// leaves, DefaultKeepDays if zero or less.
	KeepDays int
	// Dir is the folder of the archive. Without it nothing leaves the outbox,
	// unless Discard is set.
	Dir string
	// Discard lets events leave without a copy in the archive.
	Discard bool
	// First is the pause before the first round, 30 s if zero, so that a start
	// is left in peace; Every the pause between two rounds, an hour if zero.
	First, Every time.Duration
	// Settle is how long a round waits for the relay's slot to be past what it
	// is about to empty, a minute if zero. The next round does what this one
	// could not.
	Settle     time.Duration
	Now        func() time.Time      // the database's clock if nil
	Logger     *slog.Logger          // slog.Default if nil
	Registerer prometheus.Registerer // of the metrics; none if nil
}

// Retention lets the outbox's days go when all of a day is published and old
// enough: first into an archive, verified, then out of the table.
//
// It promises that an event leaves only when its copy in the archive was read
// back and compared with the table as it is at that moment, that no event ever
// stands without its mark, which would have it published again, and that
// nobody's long transaction makes writers wait for it. A process may die
// anywhere in between: the next round goes on from what it finds.
//
// One round works at a time, across processes. What it cannot do for now, as
// when a transaction is reading a day, is left to the next one.
type Retention struct {
	db      *pgxpool.Pool
	cfg     RetentionConfig
	log     *slog.Logger
	metrics *retentionMetrics
	warned  bool              // of Run alone: that nothing leaves
	at      func(step string) // tests end the process here
}

// NewRetention makes a retention of the outbox in db, whose role must own its
// tables.
func NewRetention(db *pgxpool.Pool, cfg RetentionConfig) *Retention {
	cfg.KeepDays = orDefault(max(cfg.KeepDays, 0), DefaultKeepDays)
	cfg.First = orDefault(cfg.First, 30*time.Second)
	cfg.Every = orDefault(cfg.Every, time.Hour)
	cfg.Settle = orDefault(cfg.Settle, time.Minute)
	cfg.Logger = orDefault(cfg.Logger, slog.Default())
	return &Retention{
		db: db, cfg: cfg, log: cfg.Logger.With("part", "retention"),
		metrics: newRetentionMetrics(cfg.Registerer), at: func(string) {},
	}
}

// Report is what a round did.
type Report struct {
	Elsewhere bool           `json:"elsewhere"` // another process is at it; nothing was done
	Archived  []archive.File `json:"archived"`  // files written
	Emptied   []string       `json:"emptied"`   // days whose events left, and "default"
	Dropped   []string       `json:"dropped"`   // partitions taken off
	Kept      []Kept         `json:"kept"`      // what is old enough and still there
}

// Kept is something that could not leave.
type Kept struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Run makes a round soon and then every hour until ctx ends. What fails is
// logged and tried again the next time.
func (r *Retention) Run(ctx context.Context) error {
	for wait := r.cfg.First; pause(ctx, wait) == nil; wait = r.cfg.Every {
		report, err := r.Once(ctx)
		if ctx.Err() == nil { // otherwise what broke, broke because of the stop
			r.tell(ctx, report, err)
		}
	}
	return nil
}

func (r *Retention) tell(ctx context.Context, report Report, err error) {
	for _, k := range report.Kept {
		r.log.WarnContext(ctx, "old events stay in the outbox", "what", k.What, "why", k.Why)
	}
	if err != nil {
		r.log.ErrorContext(ctx, "retention of the outbox, trying again", "error", err, "in", r.cfg.Every)
	}
}

// Once makes one round now. The error joins what failed; the report tells what
// was done all the same.
func (r *Retention) Once(ctx context.Context) (report Report, err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			r.metrics.failures.Inc()
		}
	}()
	conn, leave, err := r.enter(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("retention of the outbox: %w", err)
	}
	if conn == nil {
		return Report{Elsewhere: true}, nil
	}
	defer leave()
	o := &round{Retention: r, db: conn}
	if err := o.look(ctx); err != nil {
		return o.report, fmt.Errorf("retention of the outbox: %w", err)
	}
	if r.cfg.Dir == "" && !r.cfg.Discard {
		r.warnKeeping(ctx)
	} else {
		o.run(ctx)
	}
	if err := o.measure(ctx); err != nil {
		o.fail(err)
	}
	return o.report, errors.Join(o.errs...)
}

func (r *Retention) warnKeeping(ctx context.Context) {
	if !r.warned {
		r.log.WarnContext(ctx, "nothing leaves the outbox, and its tables grow: set outbox.archive_dir, or outbox.archive: false to let published events go without a copy")
	}
	r.warned = true
}

const lockSQL = `hashtextextended('waybill outbox retention', 0)`

// enter takes the round's lock, nil if another process has it. The lock is the
// connection's, and everything a round does to the database it does over it:
// when it is lost, so is the right to go on.
func (r *Retention) enter(ctx context.Context) (conn *pgxpool.Conn, leave func(), err error) {
	conn, err = r.db.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	var got bool
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(`+lockSQL+`)`).Scan(&got)
	if err != nil || !got {
		conn.Release()
		return nil, nil, err
	}
	return conn, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, err := conn.Exec(ctx, `SELECT pg_advisory_unlock(`+lockSQL+`)`); err != nil {
			_ = conn.Conn().Close(ctx) // the server then lets go of it
		}
		conn.Release()
	}, nil
}

// note leaves an incident for the operator. It is not part of the round's fate.
func (r *Retention) note(ctx context.Context, kind, subject string, failure error) {
	err := incident.Record(ctx, r.db, incident.Incident{
		Part: "retention", Kind: kind, Subject: subject,
		Text: failure.Error() + ". Its events stay in the outbox until this is mended.",
	})
	if err != nil && ctx.Err() == nil {
		r.log.ErrorContext(ctx, "note incident", "error", err)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
