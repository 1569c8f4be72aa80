package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Status is how far the outbox is from published.
type Status struct {
	// Backlog is the events committed and not marked. Events on their way
	// count until their mark is written, some tens of milliseconds.
	Backlog        int64      `json:"backlog"`
	BacklogIsFloor bool       `json:"backlog_is_floor"` // there are more than were counted
	Oldest         *time.Time `json:"oldest"`           // of the backlog, nil if there is none
	Slot           SlotStatus `json:"slot"`
}

// SlotStatus is the relay's replication slot as the server sees it. What the
// server does not tell, as of a slot that is being created or is lost, is nil.
type SlotStatus struct {
	Name          string `json:"name"`
	Exists        bool   `json:"exists"`
	Active        bool   `json:"active"`         // a relay reads it, or is creating it
	LagBytes      *int64 `json:"lag_bytes"`      // WAL written since the confirmed position
	RetainedBytes *int64 `json:"retained_bytes"` // WAL the server keeps because of it
	WALStatus     string `json:"wal_status"`     // reserved, extended, unreserved or lost
}

// countLimit bounds the count: past it a backlog is simply large.
const countLimit = 100_000

// ReadStatus asks the database. An empty slot is the default one.
func ReadStatus(ctx context.Context, db *pgxpool.Pool, slot string) (Status, error) {
	s := Status{Slot: SlotStatus{Name: orDefault(slot, SlotName(db.Config().ConnConfig.Database))}}
	err := db.QueryRow(ctx, `SELECT count(*), min(time) FROM (
		SELECT time FROM waybill.outbox_events e
		WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id) ORDER BY id LIMIT $1) unpublished`,
		countLimit).Scan(&s.Backlog, &s.Oldest)
	if err != nil {
		return s, fmt.Errorf("count the outbox's backlog: %w", err)
	}
	s.BacklogIsFloor = s.Backlog == countLimit
	err = db.QueryRow(ctx, `SELECT active, pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint,
		pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, coalesce(wal_status, '')
		FROM pg_replication_slots WHERE slot_name = $1`, s.Slot.Name).
		Scan(&s.Slot.Active, &s.Slot.LagBytes, &s.Slot.RetainedBytes, &s.Slot.WALStatus)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("look at slot %s: %w", s.Slot.Name, err)
	}
	s.Slot.Exists = true
	return s, nil
}
