package consumer

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// Two types on each key: with a handler for each no set could hold two events
// of a key that follow each other.
func TestASetOfAnyTypeHoldsAKeysEventsOfSeveralTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	first, other := w.contract.Type, "test.accounts.Other"
	for i := range 600 {
		w.contract.Type = first
		if i%2 == 1 {
			w.contract.Type = other
		}
		w.move([]string{"a", "b", "c"}[i%3])
	}
	w.contract.Type = first
	var most atomic.Int64
	var failed atomic.Bool
	w.start(nil, func(s *setup) {
		s.handlers = func(g *Group, c *event.Contract) {
			OnAnyBatch(g, c.Topic, Filter{}, func(ctx context.Context, tx pgx.Tx, rs []Raw) error {
				most.Store(max(most.Load(), int64(len(rs))))
				if err := keepRaw(ctx, tx, rs); err != nil || failed.Load() || len(rs) < 2 {
					return err
				}
				failed.Store(true)
				return errors.New("the first set fails once: its parts are made once all the same")
			})
		}
	})
	w.settled()
	if most.Load() < 10 {
		t.Errorf("the largest set has %d events", most.Load())
	}
}

// keepRaw is keepSet for records that nobody decoded.
func keepRaw(ctx context.Context, tx pgx.Tx, rs []Raw) error {
	es := make([]event.Of[moved], len(rs))
	for i, r := range rs {
		if err := (plain{}).Decode(ctx, r.Value, &es[i].Data, movedContract.Schema); err != nil {
			return err
		}
	}
	return keepSet(ctx, tx, es)
}
