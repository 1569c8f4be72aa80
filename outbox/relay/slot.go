package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/wal"
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
	if err := r.ensurePublication(ctx); err != nil {
		return err
	}
	slot, err := r.lookAtSlot(ctx)
	switch {
	case err != nil:
		return err
	case slot.exists && !slot.lost && !r.unusable:
		r.offerFailover(ctx)
		return nil
	}
	return r.createSlot(ctx)
}

// replaceSlot makes the slot where there is none, or anew where the server gave
// it up or it cannot be read. For one relay at a time.
func (r *Relay) replaceSlot(ctx context.Context, tx pgx.Tx) error {
	slot, err := r.lookAtSlot(ctx)
	unusable := slot.lost || r.unusable
	r.unusable = false // if another makes it anew first; we then hear again if not
	switch {
	case err != nil:
		return err
	case slot.active || slot.exists && !unusable:
		return fmt.Errorf("%w: another relay has made %s meanwhile", wal.ErrSlotInUse, r.cfg.Slot)
	case slot.exists:
		r.log.ErrorContext(ctx, "the replication slot is lost: making a new one and publishing what has no mark",
			"hint", "it kept more WAL than max_slot_wal_keep_size, or its publication was dropped")
		r.rebuilt(ctx, "slot_lost", "the slot kept more WAL than max_slot_wal_keep_size, or its publication was dropped: a new one was made, and what has no mark is published from the table")
	}
	// On other connections: a transaction that wrote makes no slot. And before
	// the drop: a crash must not leave a new slot that looks complete.
	had, err := r.forgetComplete(ctx)
	if err != nil {
		return err
	}
	if slot.exists {
		if _, err := r.db.Exec(ctx, `SELECT pg_drop_replication_slot($1)`, r.cfg.Slot); err != nil {
			return fmt.Errorf("drop lost slot %s: %w", r.cfg.Slot, err)
		}
	} else if had {
		r.log.ErrorContext(ctx, "the replication slot is gone: making a new one and publishing what has no mark")
		r.rebuilt(ctx, "slot_gone", "somebody dropped the slot, or a failover left it behind: a new one was made, and what has no mark is published from the table")
	}
	if err := r.noteMade(ctx); err != nil {
		return err
	}
	return r.newSlot(ctx, tx)
}

// noteMade writes down, before a slot is made, what it cannot bring: of the
// events published from the table it sends only those again that commit from
// here on.
func (r *Relay) noteMade(ctx context.Context) error {
	_, err := r.db.Exec(ctx, `INSERT INTO waybill.outbox_slots AS o (slot, complete_at, made_at_xid)
		VALUES ($1, NULL, pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
		ON CONFLICT (slot) DO UPDATE SET complete_at = NULL, made_at_xid = EXCLUDED.made_at_xid`, r.cfg.Slot)
	if err != nil {
		return fmt.Errorf("note that slot %s is made: %w", r.cfg.Slot, err)
	}
	return nil
}

// rebuilt makes known that a slot was lost.
func (r *Relay) rebuilt(ctx context.Context, kind, text string) {
	r.metrics.rebuilt.Inc()
	if !r.cfg.tables() {
		text = "the slot is gone or lost: events written to the WAL and not published by then are lost, as there is no table to find them in"
		r.log.ErrorContext(ctx, "events may be lost: they stood in the WAL alone, and the slot that kept it is gone")
	}
	r.incident(ctx, kind, r.cfg.Slot, text)
}

// slotState is what the server says of the slot.
type slotState struct {
	exists, active bool
	lost           bool // the server gave it up
}

func (r *Relay) lookAtSlot(ctx context.Context) (s slotState, err error) {
	var here bool
	err = r.db.QueryRow(ctx, `SELECT active, coalesce(wal_status, '') = 'lost' AND NOT active,
		coalesce(database = current_database() AND plugin = 'pgoutput', false)
		FROM pg_replication_slots WHERE slot_name = $1`, r.cfg.Slot).Scan(&s.active, &s.lost, &here)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return slotState{}, nil
	case err != nil:
		return slotState{}, fmt.Errorf("look for slot %s: %w", r.cfg.Slot, err)
	case !here:
		return slotState{}, fmt.Errorf("slot %s belongs to another database or plugin: choose another name", r.cfg.Slot)
	}
	s.exists = true
	return s, nil
}

// createSlot waits for the transactions that are open now, which the server
// has to see the end of.
func (r *Relay) createSlot(ctx context.Context) error {
	r.log.InfoContext(ctx, "creating the replication slot")
	slow := time.AfterFunc(10*time.Second, func() {
		r.log.WarnContext(ctx, "still creating the replication slot: it waits for transactions that were open before; nothing is published until they end")
	})
	defer slow.Stop()
	if err := r.makeSlot(ctx); err != nil {
		return fmt.Errorf("create slot %s (wal_level must be logical and the role needs REPLICATION): %w", r.cfg.Slot, err)
	}
	return nil
}

// isComplete tells whether all that committed before the slot is published. A
// crash may have come between the slot's creation and the end of the back-fill.
func (r *Relay) isComplete(ctx context.Context) (complete bool, err error) {
	err = r.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.outbox_slots WHERE slot = $1 AND complete_at IS NOT NULL)`, r.cfg.Slot).Scan(&complete)
	if err != nil {
		return false, fmt.Errorf("look whether slot %s is complete: %w", r.cfg.Slot, err)
	}
	return complete, nil
}

// forgetComplete tells whether there was anything to forget.
func (r *Relay) forgetComplete(ctx context.Context) (had bool, err error) {
	tag, err := r.db.Exec(ctx, `UPDATE waybill.outbox_slots SET complete_at = NULL WHERE slot = $1 AND complete_at IS NOT NULL`, r.cfg.Slot)
	if err != nil {
		return false, fmt.Errorf("forget slot %s: %w", r.cfg.Slot, err)
	}
	return tag.RowsAffected() > 0, nil
}

func (r *Relay) setComplete(ctx context.Context) error {
	_, err := r.db.Exec(ctx, `INSERT INTO waybill.outbox_slots (slot, complete_at) VALUES ($1, now())
		ON CONFLICT (slot) DO UPDATE SET complete_at = now()`, r.cfg.Slot)
	if err != nil {
		return fmt.Errorf("note that slot %s is complete: %w", r.cfg.Slot, err)
	}
	return nil
}
