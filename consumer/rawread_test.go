package consumer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// Both times are the database's: now() is when the transaction began.
func TestRecordsAreReadBeforeTheTransaction(t *testing.T) {
	t.Parallel()
	type readAt struct {
		e  event.Of[moved]
		at time.Time
	}
	w := newWorld(t, 1)
	w.many(300, 20)
	var unread, failed, late atomic.Bool
	w.start(nil, func(s *setup) {
		read := func(ctx context.Context, r Raw) (out readAt, err error) {
			if r.Offset == 150 && !unread.Swap(true) {
				return out, errors.New("this record cannot be read at first")
			}
			if err := w.db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&out.at); err != nil {
				return out, err
			}
			return out, plain{}.Decode(ctx, r.Value, &out.e.Data, movedContract.Schema)
		}
		s.handlers = func(g *Group, c *event.Contract) {
			OnAnyBatchRead(g, c.Topic, Filter{}, read, func(ctx context.Context, tx pgx.Tx, all []readAt) error {
				var began time.Time
				if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&began); err != nil {
					return err
				}
				es := make([]event.Of[moved], len(all))
				for i, a := range all {
					es[i] = a.e
					if a.at.After(began) {
						late.Store(true)
					}
				}
				if err := keepSet(ctx, tx, es); err != nil || failed.Swap(true) {
					return err
				}
				return errors.New("the first set fails once")
			})
		}
	})
	w.settled()
	if late.Load() {
		t.Error("a record was read within a transaction")
	}
	if !unread.Load() || !failed.Load() {
		t.Error("nothing failed")
	}
}
