package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox"
)

// Count is a number of events, below zero if it is unknown. Its JSON is then
// null: a zero would say that all is well.
type Count int64

// MarshalJSON writes the number, or null.
func (c Count) MarshalJSON() ([]byte, error) {
	if c < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}

// Status is how far the outbox is from published.
type Status struct {
	// Backlog is the events committed and not marked. Events on their way
	// count until their mark is written, some tens of milliseconds.
	Backlog        Count  `json:"backlog"`
	BacklogIsFloor bool   `json:"backlog_is_floor"`          // there are more than were counted
	BacklogUnknown string `json:"backlog_unknown,omitempty"` // why it is, if it is
	// Oldest is when the oldest of the backlog was made, by its writer's clock;
	// nil if there is none. Of a backlog that was not counted to its end it is
	// that of those read first.
	Oldest *time.Time `json:"oldest"`
	// PerSecond is what was marked in the last minute, a second; nil if that is
	// unknown.
	PerSecond *float64   `json:"published_per_second"`
	Slot      SlotStatus `json:"slot"`
	// Publication is nil in mode poll, which needs none.
	Publication *PublicationStatus `json:"publication"`
	Stopped     []StoppedPart      `json:"stopped_partitions"`
	Skips       []Skip             `json:"pending_skips"` // asked for and not carried out yet
	Later       int64              `json:"later"`         // events that are to leave at a moment to come
	NextDue     *time.Time         `json:"next_due"`      // the first of these moments, nil if there is none
	Incidents   []incident.Seen    `json:"incidents"`     // the latest of the last day
}

// SlotStatus is the relay's replication slot as the server sees it. What the
// server does not tell, as of a slot that is being created or is lost, is nil.
type SlotStatus struct {
	Name          string `json:"name"`
	Exists        bool   `json:"exists"`
	Active        bool   `json:"active"`         // a relay reads it, or is creating it
	LagBytes      *int64 `json:"lag_bytes"`      // WAL written since the confirmed position
	RetainedBytes *int64 `json:"retained_bytes"` // WAL the server keeps because of it
	KeepLimit     *int64 `json:"keep_limit"`     // past which the server gives the slot up; nil: it never does
	WALStatus     string `json:"wal_status"`     // reserved, extended, unreserved or lost
	Advice        string `json:"advice,omitempty"`
	// LagSeconds is how long the oldest event that is not published has waited,
	// by its writer's clock, or where events are in no table what the server
	// last measured of the relay: either way an estimate.
	LagSeconds *float64 `json:"lag_seconds_estimated"`
}

// StoppedPart is a partition that waits for an event which the broker refuses.
type StoppedPart struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"` // -1: the whole topic, which is not there
	Event     uuid.UUID `json:"event"`
	Error     string    `json:"error"`
	Since     time.Time `json:"since"`
	TriedAt   time.Time `json:"tried_at"`
	Attempts  int64     `json:"attempts"`
}

// Skip is an event that an operator gave up.
type Skip struct {
	Event   uuid.UUID `json:"event"`
	Reason  string    `json:"reason"`
	AskedBy string    `json:"asked_by"`
	AskedAt time.Time `json:"asked_at"`
}

// Bounds of what is read: past them a backlog is simply large, and a list long.
const (
	countLimit   = 1_000_000
	countWithin  = 10 * time.Second
	listLimit    = 100
	countWorkers = 2
	firstRead    = 10_000 // events that tell the age of a larger backlog
)

// ReadStatus asks the database about the relay of that slot, the default one
// if empty, whose events stand in the table.
func ReadStatus(ctx context.Context, db *pgxpool.Pool, slot string) (Status, error) {
	return ReadStatusOf(ctx, db, Config{Slot: slot})
}

// ReadStatusOf asks the database about a relay of that mode and slot. A backlog
// that cannot be counted within ten seconds is unknown and no error.
func ReadStatusOf(ctx context.Context, db *pgxpool.Pool, cfg Config) (s Status, err error) {
	cfg.Slot = orDefault(cfg.Slot, SlotName(db.Config().ConnConfig.Database))
	if s.Slot, err = ReadSlot(ctx, db, cfg.Slot); err != nil {
		return s, err
	}
	s.Slot.Advice = s.Slot.Advise(cfg)
	if cfg.Mode != Poll {
		p, err := ReadPublication(ctx, db, cfg.Publication)
		if err != nil {
			return s, err
		}
		if s.Publication = &p; !p.Whole && s.Slot.Exists && !s.Slot.Active {
			s.Slot.Advice = "a relay that runs cannot read it while the publication leaves events out: see there"
		}
	}
	if cfg.tables() {
		err = s.readBacklog(ctx, db)
	} else {
		s.Backlog, s.BacklogUnknown = -1, "events are written to the WAL alone, where they cannot be counted"
		err = s.Slot.readLag(ctx, db)
	}
	if err != nil {
		return s, err
	}
	if cfg.tables() { // else there are no marks, and none is not 0
		if s.PerSecond, err = publishRate(ctx, db); err != nil {
			return s, err
		}
	}
	if s.Stopped, err = ReadStopped(ctx, db, cfg.Slot); err != nil {
		return s, err
	}
	if s.Skips, err = readSkips(ctx, db); err != nil {
		return s, err
	}
	if err = db.QueryRow(ctx, `SELECT count(*), min(due_at) FROM waybill.outbox_later`).Scan(&s.Later, &s.NextDue); err != nil {
		return s, fmt.Errorf("count events for later: %w", err)
	}
	s.Incidents, err = incident.List(ctx, db, time.Now().Add(-24*time.Hour), 5)
	return s, err
}

// readBacklog counts with what processors the server can spare: somebody waits.
func (s *Status) readBacklog(ctx context.Context, db *pgxpool.Pool) error {
	below, err := outbox.PublishedBelow(ctx, db, s.Slot.Name)
	if err != nil {
		return err
	}
	counting, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	b, err := outbox.ReadBacklog(counting, db, below, countLimit, countWorkers)
	if err == nil && b.Events == countLimit { // side by side they were read in no order
		s.BacklogIsFloor = true
		var first outbox.Backlog
		first, err = outbox.ReadBacklog(counting, db, below, firstRead, 0)
		b.Oldest = first.Oldest
	}
	switch {
	case err != nil && counting.Err() != nil && ctx.Err() == nil:
		s.Backlog, s.BacklogUnknown = -1, fmt.Sprintf("it could not be counted within %s", countWithin)
		return nil
	case err != nil:
		return err
	}
	s.Backlog, s.Oldest = Count(b.Events), b.Oldest
	age := 0.0
	if b.Oldest != nil {
		age = max(0, time.Since(*b.Oldest).Seconds())
	}
	s.Slot.LagSeconds = &age
	return nil
}

// ReadSlot asks the server about a replication slot. What cannot be asked for
// here, how long its relay is behind, is left out.
func ReadSlot(ctx context.Context, db *pgxpool.Pool, slot string) (SlotStatus, error) {
	s := SlotStatus{Name: slot}
	err := db.QueryRow(ctx, `SELECT active, pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint,
		pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, coalesce(wal_status, ''),
		(SELECT nullif(setting::bigint, -1) * 1024 * 1024 FROM pg_settings WHERE name = 'max_slot_wal_keep_size')
		FROM pg_replication_slots WHERE slot_name = $1`, s.Name).
		Scan(&s.Active, &s.LagBytes, &s.RetainedBytes, &s.WALStatus, &s.KeepLimit)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("look at slot %s: %w", s.Name, err)
	}
	s.Exists = true
	return s, nil
}

// readLag asks what the server last measured of the relay that reads the slot.
func (s *SlotStatus) readLag(ctx context.Context, db *pgxpool.Pool) error {
	// The server forgets what it measured once all is confirmed. Of another
	// role's relay it tells nothing, not even the state.
	err := db.QueryRow(ctx, `SELECT CASE WHEN r.state IS NOT NULL THEN coalesce(extract(epoch FROM r.flush_lag), 0) END::float8
		FROM pg_replication_slots s JOIN pg_stat_replication r ON r.pid = s.active_pid WHERE s.slot_name = $1`, s.Name).
		Scan(&s.LagSeconds)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("ask how long the relay is behind: %w", err)
	}
	return nil
}

// StartCommand is how [SlotStatus.Advise] says that a relay is started; where
// `waybill up` does, another is to be put in its place.
const StartCommand = "waybill run relay"

// Advise tells what to do about the slot, empty if nothing.
func (s *SlotStatus) Advise(cfg Config) string {
	kept := int64(0)
	if s.RetainedBytes != nil {
		kept = *s.RetainedBytes
	}
	raise := fmt.Sprintf("ALTER SYSTEM SET max_slot_wal_keep_size = '%dGB'; SELECT pg_reload_conf()", 2*kept>>30+1)
	switch {
	case cfg.Mode == Poll:
		if s.Exists {
			return "nothing reads it in mode poll, and it holds back WAL: SELECT pg_drop_replication_slot('" + s.Name + "')"
		}
		return ""
	case !s.Exists && cfg.Mode == Message:
		return "start the relay, which makes it: until then events are refused, as they would be lost"
	case !s.Exists:
		return "start the relay, which makes it and publishes what has no mark from the table: " + StartCommand
	case s.WALStatus == "lost" && cfg.Mode == Message:
		return "what was written since its confirmed position is lost. Start the relay, which makes it anew: " + StartCommand
	case s.WALStatus == "lost":
		return "nothing is lost: start the relay, which makes it anew and publishes what has no mark from the table: " + StartCommand
	case s.WALStatus == "unreserved":
		return "the server gives the slot up at its next checkpoint. Let the relay catch up, or give it time: " + raise
	case s.KeepLimit != nil && kept > *s.KeepLimit/2:
		return "more than half of what the server keeps for it is used up. Let the relay catch up, or give it time: " + raise
	case !s.Active:
		return "start the relay: " + StartCommand
	}
	return ""
}

// ReadStopped lists the partitions that wait for a refused event, the oldest
// first.
func ReadStopped(ctx context.Context, db *pgxpool.Pool, slot string) ([]StoppedPart, error) {
	rows, err := db.Query(ctx, `SELECT topic, partition, event_id, error, since, tried_at, attempts
		FROM waybill.outbox_stopped WHERE slot = $1 ORDER BY since LIMIT $2`, slot, listLimit)
	if err != nil {
		return nil, fmt.Errorf("list stopped partitions: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[StoppedPart])
	if err != nil {
		return nil, fmt.Errorf("list stopped partitions: %w", err)
	}
	return list, nil
}

// rateOver is what a publish rate is taken over; tailLimit bounds the pages of
// a partition that are read for it, 128 MiB at most.
const (
	rateOver  = time.Minute
	tailLimit = 16_384
)

// publishRate is the marks of the last minute, a second. Marks are appended, so
// that the last ones stand at the end of the tables of their events' days: only
// these ends are read, however much history there is.
func publishRate(ctx context.Context, db *pgxpool.Pool) (*float64, error) {
	rows, err := db.Query(ctx, `SELECT inhrelid::regclass::text, pg_relation_size(inhrelid) / current_setting('block_size')::int
		FROM pg_inherits WHERE inhparent = 'waybill.outbox_published'::regclass`)
	if err != nil {
		return nil, fmt.Errorf("list the days of marks: %w", err)
	}
	type part struct {
		Table string
		Pages int64
	}
	parts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[part])
	if err != nil {
		return nil, fmt.Errorf("list the days of marks: %w", err)
	}
	sum := 0.0
	for _, p := range parts {
		rate, err := tailRate(ctx, db, p.Table, p.Pages)
		if err != nil {
			return nil, err
		}
		sum += rate
	}
	return &sum, nil
}

// tailRate reads the end of a table of marks, more and more of it until it has
// the last minute.
func tailRate(ctx context.Context, db *pgxpool.Pool, table string, pages int64) (float64, error) {
	for n := int64(1); ; n *= 8 {
		from := max(0, pages-n)
		var recent int64
		var since *float64 // seconds from the oldest mark read until now
		// The name comes from the catalogue, quoted there where need be.
		err := db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE published_at > now() - $1::interval),
			extract(epoch FROM now() - min(published_at))::float8
			FROM `+table+` WHERE ctid >= $2::text::tid`, rateOver, fmt.Sprintf("(%d,0)", from)).Scan(&recent, &since)
		switch {
		case err != nil:
			return 0, fmt.Errorf("count the marks of the last minute: %w", err)
		case recent == 0 || since == nil:
			return 0, nil
		case *since >= rateOver.Seconds() || from == 0:
			return float64(recent) / rateOver.Seconds(), nil
		case n >= tailLimit:
			return float64(recent) / max(*since, 0.001), nil
		}
	}
}
