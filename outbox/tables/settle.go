package tables

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// settleEvery is the pause between two looks at the slots.
const settleEvery = 250 * time.Millisecond

// waitForSlots waits until no relay's slot can send again what is about to
// leave, and gives the slots that could. A relay tells by its mark that an
// event the slot sends again is published: with the mark gone it would publish
// it once more.
func (o *round) waitForSlots(ctx context.Context) (behind string, err error) {
	// Everything that is to leave was committed before this.
	var barrier string
	if err := o.db.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text`).Scan(&barrier); err != nil {
		return "", fmt.Errorf("look at the WAL: %w", err)
	}
	deadline := time.Now()
	if o.leaving() {
		deadline = deadline.Add(o.cfg.Settle)
	}
	for {
		slots, err := o.slotsBefore(ctx, barrier)
		if err != nil {
			return "", fmt.Errorf("look at the relay's slots: %w", err)
		}
		if len(slots) == 0 || time.Now().After(deadline) {
			return strings.Join(slots, ", "), nil
		}
		if err := pause(ctx, settleEvery); err != nil {
			return "", err
		}
	}
}

// leaving tells whether anything is about to leave.
func (o *round) leaving() bool {
	return len(o.strays) > 0 || o.stray && o.cfg.Discard ||
		slices.ContainsFunc(o.days, func(d *day) bool { return d.ready })
}

// slotsBefore are the relays' slots that are not past a position. One that the
// server gave up sends nothing any more: it is made anew, and what has no mark
// is published from the table.
func (o *round) slotsBefore(ctx context.Context, position string) ([]string, error) {
	rows, err := o.db.Query(ctx, `SELECT slot_name::text FROM pg_replication_slots
		WHERE database = current_database() AND plugin = 'pgoutput' AND coalesce(wal_status, '') <> 'lost'
			AND (slot_name IN (SELECT slot FROM waybill.outbox_slots) OR starts_with(slot_name, 'waybill_outbox_'))
			AND (confirmed_flush_lsn IS NULL OR confirmed_flush_lsn < $1::text::pg_lsn)
		ORDER BY 1`, position)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
