package relay

import (
	"context"
	"fmt"
	"time"
)

// backfill publishes the rows that have no mark: those from before the slot,
// and perhaps some that the stream will bring again.
func (r *reader) backfill(ctx context.Context) error {
	r.ctx = ctx
	floor, err := r.s.floor(ctx)
	if err != nil {
		return err
	}
	count := 0
	told := time.Now()
	err = r.unmarked(ctx, floor, "", func(row *row, from origin) (bool, error) {
		// A transaction of its own for each: the ledger then forgets them as
		// they are marked.
		n := r.s.ledger.begin(from.upTo, time.Time{})
		if err := r.publish(n, row); err != nil {
			return false, err
		}
		r.s.ledger.commit(n, 0)
		if r.s.bornAt > 0 && from.xid >= r.s.bornAt {
			r.resent.add(row.id(), from.upTo)
		}
		if count++; time.Since(told) > 5*time.Second {
			told = time.Now()
			r.s.log.InfoContext(ctx, "publishing from the table what has no mark", "events", count)
		}
		return true, nil
	})
	if err == nil {
		err = r.s.ledger.waitMarked(ctx)
	}
	if err != nil {
		return fmt.Errorf("back-fill: %w", err)
	}
	if count > 0 {
		r.s.log.InfoContext(ctx, "the slot is new: published events that had no mark from the table", "events", count)
	}
	return r.s.setComplete(ctx)
}
