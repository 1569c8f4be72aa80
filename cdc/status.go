package cdc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Status is what is published and how far it is.
type Status struct {
	Slot   SlotStatus    `json:"slot"`
	Tables []TableStatus `json:"tables"`
}

// SlotStatus is the replication slot as the server sees it. What the server
// does not tell is nil.
type SlotStatus struct {
	Name          string `json:"name"`
	Exists        bool   `json:"exists"`
	Active        bool   `json:"active"`         // a process reads it, or is creating it
	LagBytes      *int64 `json:"lag_bytes"`      // WAL written since the confirmed position
	RetainedBytes *int64 `json:"retained_bytes"` // WAL the server keeps because of it
	WALStatus     string `json:"wal_status"`     // reserved, extended, unreserved or lost
	Losses        int64  `json:"losses"`         // times it was found lost
}

// TableStatus is one table.
type TableStatus struct {
	Table string  `json:"table"`
	Topic string  `json:"topic"`
	Error *string `json:"error"` // why its changes are not published, nil if they are
	// Before tells whether events say what the row was: its replica identity is
	// full. Large values that an update leaves alone are then told too.
	Before   bool           `json:"before"`
	Snapshot SnapshotStatus `json:"snapshot"`
}

// SnapshotStatus is the latest snapshot of a table.
type SnapshotStatus struct {
	Phase      string     `json:"phase"`  // waiting, reading, sweeping or done
	Reason     string     `json:"reason"` // of the last request
	Pending    bool       `json:"pending"`
	RowsRead   int64      `json:"rows_read"`
	RowsTotal  *int64     `json:"rows_total"` // estimated until it is done; nil if there is no estimate
	Deleted    int64      `json:"deleted"`    // keys of the topic that the table had no row of
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
}

// ReadStatus asks the database. An empty slot is the default one.
func ReadStatus(ctx context.Context, db *pgxpool.Pool, slot string) (Status, error) {
	s := Status{Slot: SlotStatus{Name: orDefault(slot, SlotName(db.Config().ConnConfig.Database))}, Tables: []TableStatus{}}
	if err := s.Slot.read(ctx, db); err != nil {
		return s, err
	}
	states, err := loadStates(ctx, db, s.Slot.Name)
	if err != nil {
		return s, err
	}
	for _, st := range sorted(states) {
		s.Tables = append(s.Tables, TableStatus{
			Table: st.Name, Topic: st.Topic, Error: st.Error, Before: st.Identity == "f",
			Snapshot: SnapshotStatus{
				Phase: st.Phase, Reason: st.Reason, Pending: st.Served < st.Requested, RowsRead: st.RowsRead, RowsTotal: st.RowsTotal,
				Deleted: st.Deleted, StartedAt: st.StartedAt, FinishedAt: st.FinishedAt,
			},
		})
	}
	return s, nil
}

func (s *SlotStatus) read(ctx context.Context, db querier) error {
	err := db.QueryRow(ctx, `SELECT coalesce(max(losses), 0) FROM waybill.cdc_slots WHERE slot = $1`, s.Name).Scan(&s.Losses)
	if err != nil {
		return fmt.Errorf("look at slot %s: %w", s.Name, err)
	}
	err = db.QueryRow(ctx, `SELECT active, pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint,
		pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint, coalesce(wal_status, '')
		FROM pg_replication_slots WHERE slot_name = $1`, s.Name).
		Scan(&s.Active, &s.LagBytes, &s.RetainedBytes, &s.WALStatus)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at slot %s: %w", s.Name, err)
	}
	s.Exists = true
	return nil
}

// ErrUnknownTable is a table whose changes are not published.
var ErrUnknownTable = errors.New("its changes are not published")

// ErrNotPublished is a table that is configured and cannot be published, as
// long as that is so.
var ErrNotPublished = errors.New("it cannot be read just now")

// RequestSnapshot has the process that publishes a table, schema.table, read it
// again from the beginning, whether that runs now or later.
func RequestSnapshot(ctx context.Context, db *pgxpool.Pool, slot, table string) error {
	slot = orDefault(slot, SlotName(db.Config().ConnConfig.Database))
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		n, err := request(ctx, tx, slot, table, "it was asked for")
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("table %q: %w", table, ErrUnknownTable)
		}
		if err := mayBeRead(ctx, tx, slot, table); err != nil {
			return err
		}
		return exec(ctx, tx, `SELECT pg_logical_emit_message(true, $1, $2::text)`, messagePrefix, messageWake)
	})
}

// mayBeRead refuses what would be asked for in vain: once such a table is
// mended, it is read without being asked for.
func mayBeRead(ctx context.Context, tx pgx.Tx, slot, table string) error {
	var problem *string
	var there bool
	err := tx.QueryRow(ctx, `SELECT error, EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname || '.' || c.relname = t.name)
		FROM waybill.cdc_tables t WHERE slot = $1 AND name = $2`, slot, table).Scan(&problem, &there)
	switch {
	case err != nil:
		return fmt.Errorf("look at table %s: %w", table, err)
	case problem != nil:
		return fmt.Errorf("table %s: %w, and will be read once that is mended: %s", table, ErrNotPublished, *problem)
	case !there:
		return fmt.Errorf("table %s: %w: there is no such table in this database any more", table, ErrNotPublished)
	}
	return nil
}

// ErrInUse is a slot that a process reads, or tries to.
var ErrInUse = errors.New("a process publishes changes, or tries to, just now")

// Drop takes the slot, the publication and all that is known of tables and
// snapshots out of the database, which then keeps no WAL for change events any
// more. Topics stay as they are. Whoever publishes again begins anew.
func Drop(ctx context.Context, db *pgxpool.Pool, slot, publication string) error {
	slot = orDefault(slot, SlotName(db.Config().ConnConfig.Database))
	s := SlotStatus{Name: slot}
	if err := s.read(ctx, db); err != nil {
		return err
	}
	if s.Active {
		return fmt.Errorf("slot %s: %w: stop it first", slot, ErrInUse)
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := alone(ctx, tx, slot); err != nil {
			return err
		}
		for _, table := range []string{"cdc_slots", "cdc_tables", "cdc_keys", "cdc_sweeps"} {
			if err := exec(ctx, tx, `DELETE FROM waybill.`+table+` WHERE slot = $1`, slot); err != nil {
				return err
			}
		}
		name := pgx.Identifier{orDefault(publication, DefaultPublication)}.Sanitize()
		if err := exec(ctx, tx, `DROP PUBLICATION IF EXISTS `+name); err != nil {
			return err
		}
		return exec(ctx, tx, `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1`, slot)
	})
}
