package relay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A relay whose connection breaks in the middle of a back-fill does not notice
// before it is through, and another may have made the slot anew by then. Would
// the first one call that complete, what committed in between would be in
// neither. So whoever makes a slot and whoever calls it complete exclude each
// other; the one takes back what was said of the slot before, the other says
// nothing of a slot it does not read.

const lockSlot = `SELECT pg_advisory_xact_lock(hashtextextended('waybill slot ' || $1, 0))`

// underSlotLock runs work in a transaction that holds the lock.
func (r *Relay) underSlotLock(ctx context.Context, work func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSlot, r.cfg.Slot); err != nil {
			return err
		}
		return work(tx)
	})
}

// makeSlot makes the slot, of which nothing is known then.
func (r *Relay) makeSlot(ctx context.Context) error {
	return r.underSlotLock(ctx, func(tx pgx.Tx) error { return r.replaceSlot(ctx, tx) })
}

// setComplete notes that all that committed before the slot is published, if we
// still read that slot. If not, nothing is said: reading on will tell why, as
// that the slot can never be read.
func (s *session) setComplete(ctx context.Context) error {
	if s.stream == nil {
		return s.Relay.setComplete(ctx)
	}
	err := s.underSlotLock(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO waybill.outbox_slots (slot, complete_at)
			SELECT slot_name, now() FROM pg_replication_slots WHERE slot_name = $1 AND active_pid = $2
			ON CONFLICT (slot) DO UPDATE SET complete_at = now()`, s.cfg.Slot, int64(s.stream.PID()))
		return err
	})
	if err != nil {
		return fmt.Errorf("note that slot %s is complete: %w", s.cfg.Slot, err)
	}
	return nil
}
