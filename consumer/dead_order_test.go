package consumer

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// Where no order is kept, nothing waits for the dead.
func TestUnorderedADeadEventHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var mended atomic.Bool
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		switch {
		case e.Data.N == 1:
			return errBroken
		case e.Data.N == 2 && !mended.Load():
			return errTrouble
		}
		return keep(ctx, tx, e)
	}, atOnce, func(s *setup) { s.cfg.Ordering = Unordered })
	w.move("a", "a", "a")
	w.untilDead(1)
	w.until("the other is parked", func() bool {
		return w.effects("a") == 1 && w.number(`SELECT count(*) FROM waybill.parked WHERE state = 'retrying'`) == 1
	})
	mended.Store(true)
	w.until("it is handled", func() bool { return w.effects("a") == 2 })
	if k := w.deadKeys(DeadFilter{}); len(k) != 1 {
		t.Errorf("%+v", k)
	}
}

// A partition in order waits for its event, unless a rule ends that.
func TestByPartitionARuleMayDropButNothingIsDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var tries atomic.Int32
	var mended atomic.Bool
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		switch {
		case e.Data.Account == "a":
			return errNone
		case e.Data.Account == "b" && !mended.Load():
			tries.Add(1)
			return errBroken
		}
		return keep(ctx, tx, e)
	}, policy(When("none", Is(errNone)).Try(2, quick).ThenDrop(), When("broken", Is(errBroken))), func(s *setup) {
		s.cfg.Ordering = ByPartition
	})
	w.move("a", "b", "c")
	w.until("a is dropped and b tried on", func() bool { return tries.Load() > 2 })
	if w.effects("c") != 0 || len(w.parked()) != 0 {
		t.Error("c overtook, or something is parked")
	}
	mended.Store(true)
	w.until("the partition goes on", func() bool { return w.effects("b") == 1 && w.effects("c") == 1 })
}
