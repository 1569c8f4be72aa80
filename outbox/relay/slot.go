package relay

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// SlotName is the default slot of a database. Slots belong to the whole
// server, so that the database's name must be in it.
func SlotName(database string) string {
	name := "waybill_outbox_" + strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '_'
	}, database)
	return name[:min(len(name), 63)] // the server's limit
}

// ensureSlot creates the slot if it is not there and tells whether its stream
// is complete. What committed before a slot was created is not in it: the rows
// without a mark must then be published from the table, and until that is
// written down a crash may have come in between.
func (r *Relay) ensureSlot(ctx context.Context) (complete bool, err error) {
	var exists bool
	err = r.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1),
		EXISTS (SELECT FROM waybill.outbox_slots WHERE slot = $1)`, r.cfg.Slot).Scan(&exists, &complete)
	if err != nil {
		return false, fmt.Errorf("look for slot %s: %w", r.cfg.Slot, err)
	}
	if exists {
		return complete, nil
	}
	if complete {
		r.log.ErrorContext(ctx, "the replication slot is gone: making a new one and publishing what has no mark")
	}
	if _, err = r.db.Exec(ctx, `DELETE FROM waybill.outbox_slots WHERE slot = $1`, r.cfg.Slot); err != nil {
		return false, fmt.Errorf("forget slot %s: %w", r.cfg.Slot, err)
	}
	r.log.InfoContext(ctx, "creating the replication slot")
	_, err = r.db.Exec(ctx, `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, r.cfg.Slot)
	if err != nil {
		return false, fmt.Errorf("create slot %s (wal_level must be logical and the role needs REPLICATION): %w", r.cfg.Slot, err)
	}
	return false, nil
}

// backfill publishes the rows that have no mark, oldest first: those from
// before the slot, and perhaps some that the stream will bring again, under
// the same ids.
func (s *session) backfill(ctx context.Context) error {
	rows, err := s.db.Query(ctx, backfillQuery, pgx.QueryResultFormats{pgx.BinaryFormatCode})
	if err != nil {
		return fmt.Errorf("back-fill: %w", err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		r := row(rows.RawValues())
		tx := s.ledger.begin(envelope(&r).Time)
		if err := s.publish(tx, r); err != nil {
			return fmt.Errorf("back-fill: %w", err)
		}
		s.ledger.commit(tx, 0)
		n++
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("back-fill: %w", err)
	}
	if err := s.ledger.waitIdle(ctx); err != nil {
		return fmt.Errorf("back-fill: %w", err)
	}
	if n > 0 {
		s.log.WarnContext(ctx, "the slot was new: published events that had no mark from the table", "events", n)
	}
	_, err = s.db.Exec(ctx, `INSERT INTO waybill.outbox_slots (slot) VALUES ($1) ON CONFLICT DO NOTHING`, s.cfg.Slot)
	if err != nil {
		return fmt.Errorf("note that slot %s is complete: %w", s.cfg.Slot, err)
	}
	return nil
}

var backfillQuery = `SELECT ` + strings.Join(columnNames[:], ", ") + ` FROM waybill.outbox_events e
	WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id) ORDER BY id`
