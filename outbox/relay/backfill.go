package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// backfill publishes the rows that have no mark: those from before the slot,
// and perhaps some that the stream will bring again.
func (r *reader) backfill(ctx context.Context) error {
	r.ctx = ctx
	floor, err := r.s.floor(ctx)
	if err != nil {
		return err
	}
	var madeAt int64
	err = r.s.db.QueryRow(ctx, `SELECT made_at_xid FROM waybill.outbox_slots WHERE slot = $1`, r.s.cfg.Slot).Scan(&madeAt)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("back-fill: look since when the slot is: %w", err)
	}
	count := 0
	told := time.Now()
	err = r.unmarked(ctx, floor, "", func(row *row, from origin) (bool, error) {
		// A transaction of its own for each: the ledger then forgets them as
		// they are marked.
		n := r.s.ledger.begin(from.upTo, time.Time{})
		if err := r.publish(n, row, true); err != nil {
			return false, err
		}
		r.s.ledger.commit(n, 0)
		if from.xid >= madeAt {
			r.resent.add(row.id(), from.upTo)
		}
		if count++; time.Since(told) > 5*time.Second {
			told = time.Now()
			r.s.log.InfoContext(ctx, "publishing from the table what has no mark", "events", count)
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("back-fill: %w", err)
	}
	if count > 0 {
		r.s.log.InfoContext(ctx, "published events that had no mark from the table", "events", count)
	}
	r.filled = r.s.ledger.last()
	_, err = within(ctx, fillWait, r.s.ledger.waitMarked)
	return errors.Join(err, r.completed(ctx))
}

// fillWait bounds the wait for the marks of a back-fill: a partition that takes
// nothing must not keep the others waiting.
const fillWait = time.Second

// completed notes that the back-fill is, once it is.
func (r *reader) completed(ctx context.Context) error {
	if r.filled == 0 || !r.s.ledger.passed(r.filled) {
		return nil
	}
	r.filled = 0
	return r.s.setComplete(ctx)
}
