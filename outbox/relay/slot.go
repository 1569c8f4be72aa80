package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

// ensureSlot creates the slot if it is not there, and makes it anew if it
// cannot be read any more. What committed before a slot was created is not in
// it: the rows without a mark must then be published from the table.
func (r *Relay) ensureSlot(ctx context.Context) error {
	if err := r.checkPublication(ctx); err != nil {
		// What commits meanwhile will never be in the stream.
		_, forgot := r.forgetComplete(ctx)
		return errors.Join(err, forgot)
	}
	exists, lost, err := r.lookAtSlot(ctx)
	lost = lost || r.unusable
	r.unusable = false // another relay may make it anew first; we then hear again if not
	switch {
	case err != nil:
		return err
	case exists && !lost:
		return nil
	case exists:
		r.log.ErrorContext(ctx, "the replication slot is lost: making a new one and publishing what has no mark",
			"hint", "it kept more WAL than max_slot_wal_keep_size, or its publication was dropped")
		// Before the drop: a crash must not leave a new slot that looks complete.
		if _, err := r.forgetComplete(ctx); err != nil {
			return err
		}
		if _, err := r.db.Exec(ctx, `SELECT pg_drop_replication_slot($1)`, r.cfg.Slot); err != nil {
			return fmt.Errorf("drop lost slot %s: %w", r.cfg.Slot, err)
		}
	}
	had, err := r.forgetComplete(ctx)
	if err != nil {
		return err
	}
	if had {
		r.log.ErrorContext(ctx, "the replication slot is gone: making a new one and publishing what has no mark")
	}
	return r.createSlot(ctx)
}

// lookAtSlot tells whether the slot is there, and whether the server gave it
// up.
func (r *Relay) lookAtSlot(ctx context.Context) (exists, lost bool, err error) {
	var here bool
	err = r.db.QueryRow(ctx, `SELECT coalesce(wal_status, '') = 'lost' AND NOT active,
		coalesce(database = current_database() AND plugin = 'pgoutput', false)
		FROM pg_replication_slots WHERE slot_name = $1`, r.cfg.Slot).Scan(&lost, &here)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("look for slot %s: %w", r.cfg.Slot, err)
	case !here:
		return false, false, fmt.Errorf("slot %s belongs to another database or plugin: choose another name", r.cfg.Slot)
	}
	return true, lost, nil
}

// createSlot waits for the transactions that are open now, which the server
// has to see the end of.
func (r *Relay) createSlot(ctx context.Context) error {
	r.log.InfoContext(ctx, "creating the replication slot")
	slow := time.AfterFunc(10*time.Second, func() {
		r.log.WarnContext(ctx, "still creating the replication slot: it waits for transactions that were open before; nothing is published until they end")
	})
	defer slow.Stop()
	_, err := r.db.Exec(ctx, `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, r.cfg.Slot)
	if err != nil {
		return fmt.Errorf("create slot %s (wal_level must be logical and the role needs REPLICATION): %w", r.cfg.Slot, err)
	}
	return nil
}

// isComplete tells whether all that committed before the slot is published. A
// crash may have come between the slot's creation and the end of the back-fill.
func (r *Relay) isComplete(ctx context.Context) (complete bool, err error) {
	err = r.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.outbox_slots WHERE slot = $1)`, r.cfg.Slot).Scan(&complete)
	if err != nil {
		return false, fmt.Errorf("look whether slot %s is complete: %w", r.cfg.Slot, err)
	}
	return complete, nil
}

// forgetComplete tells whether there was anything to forget.
func (r *Relay) forgetComplete(ctx context.Context) (had bool, err error) {
	tag, err := r.db.Exec(ctx, `DELETE FROM waybill.outbox_slots WHERE slot = $1`, r.cfg.Slot)
	if err != nil {
		return false, fmt.Errorf("forget slot %s: %w", r.cfg.Slot, err)
	}
	return tag.RowsAffected() > 0, nil
}

// checkPublication refuses a publication that leaves events out: the stream
// would be silent, not broken. A schema dropped and made again leaves one
// behind that is empty.
func (r *Relay) checkPublication(ctx context.Context) error {
	var whole bool
	err := r.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_publication p JOIN pg_publication_tables t USING (pubname)
		WHERE pubname = $1 AND pubinsert AND pubviaroot AND schemaname = 'waybill' AND tablename = 'outbox_events'
		AND to_jsonb(t)->>'rowfilter' IS NULL)`, r.cfg.Publication).Scan(&whole)
	if err != nil {
		return fmt.Errorf("look at publication %s: %w", r.cfg.Publication, err)
	}
	if !whole {
		return fmt.Errorf("publication %[1]s does not carry the inserts of waybill.outbox_events: CREATE PUBLICATION %[1]s FOR TABLE waybill.outbox_events WITH (publish = 'insert', publish_via_partition_root = true), or add the table to it", r.cfg.Publication)
	}
	return nil
}

// backfill publishes the rows that have no mark, oldest first: those from
// before the slot, and perhaps some that the stream will bring again, under
// the same ids. Ids carry the clock of their writer; where two writers' clocks
// differ, a key's own sequence goes before it.
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
		s.log.InfoContext(ctx, "the slot is new: published events that had no mark from the table", "events", n)
	}
	_, err = s.db.Exec(ctx, `INSERT INTO waybill.outbox_slots (slot) VALUES ($1) ON CONFLICT DO NOTHING`, s.cfg.Slot)
	if err != nil {
		return fmt.Errorf("note that slot %s is complete: %w", s.cfg.Slot, err)
	}
	return nil
}

// An event goes where the highest id stands that its key has up to its
// sequence. Within a key that is the sequence's order, or the ids' where there
// is no sequence; between keys it is the ids'.
var backfillQuery = `SELECT ` + strings.Join(columnNames[:], ", ") + ` FROM (
		SELECT *, max(id::text COLLATE "C") OVER (PARTITION BY topic, subject ORDER BY sequence, id) AS place
		FROM waybill.outbox_events e
		WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)) unpublished
	ORDER BY place, sequence, id`
