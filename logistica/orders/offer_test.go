package orders_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
)

// clocked is a bed whose clock moves only when a test says so.
func clocked(t *testing.T, cfg orders.Config) (b bed, ahead func(time.Duration)) {
	t.Helper()
	var past atomic.Int64
	began := time.Now()
	cfg.Now = func() time.Time { return began.Add(time.Duration(past.Load())) }
	return newBed(t, cfg), func(d time.Duration) { past.Add(int64(d)) }
}

func (b bed) takeBack(t *testing.T) int {
	t.Helper()
	n, err := b.TakeBack(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAnOrderThatNobodySetsOutForIsAnothers(t *testing.T) {
	t.Parallel()
	b, ahead := clocked(t, orders.Config{Attempts: 2})
	ours, theirs := event.NewID(), event.NewID()
	left, _ := b.assigned(t, ours)
	other, _ := b.assigned(t, theirs)
	taken, _ := b.assigned(t, ours)
	byHand := b.walk(t, ours, b.create(t, ours).ID, orders.Assigning, orders.Assigned) // whose courier nobody knows
	ahead(5 * time.Minute)
	if n := b.takeBack(t); n != 0 {
		t.Fatalf("%d are taken back in time", n)
	}
	b.walk(t, ours, taken.ID, orders.PickupOngoing)
	ahead(time.Second)
	if n := b.takeBack(t); n != 2 {
		t.Errorf("%d are taken back, want 2", n)
	}
	if n := b.takeBack(t); n != 0 {
		t.Errorf("%d are taken back again", n)
	}
	for o, tenant := range map[uuid.UUID]uuid.UUID{left.ID: ours, other.ID: theirs} {
		got := b.get(t, tenant, o)
		if got.State != orders.Created || got.Attempt != 2 || got.Courier != uuid.Nil {
			t.Errorf("left alone: %s in attempt %d", got.State, got.Attempt)
		}
		list := b.events(t, o)
		if e := decode[contracts.OrderStatusChanged](t, list[len(list)-1].Body); *e.Reason != "EXPIRED" || e.Actor != contracts.ActorSystem {
			t.Errorf("said %+v", e)
		}
		b.requireGapless(t, got)
	}
	for _, o := range []orders.Order{taken, byHand} {
		if got := b.get(t, ours, o.ID); got.Attempt != 1 || got.State == orders.Created {
			t.Errorf("%s is %s in attempt %d", o.State, got.State, got.Attempt)
		}
	}
	second := newSaga(left.ID, 2)
	b.give(t, ours, second.reserved, second.billed, second.notified)
	ahead(6 * time.Minute)
	b.takeBack(t)
	if got := b.get(t, ours, left.ID); got.State != orders.Unassignable {
		t.Errorf("after the last attempt: %s", got.State)
	}
}

// Whoever is first decides: the courier who sets out at the last moment has the
// order, or is told that it is theirs no longer.
func TestSettingOutRacingTheEndOfTheOfferHasOneWinner(t *testing.T) {
	t.Parallel()
	b, ahead := clocked(t, orders.Config{Offer: time.Minute})
	tenant := event.NewID()
	won := map[orders.State]int{}
	for range 30 {
		o, _ := b.assigned(t, tenant)
		ahead(2 * time.Minute)
		var moved error
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := b.TakeBack(t.Context()); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			_, moved = b.MoveAsCourier(t.Context(), o.Courier, o.ID, orders.Move{To: orders.PickupOngoing}, "")
		})
		all.Wait()
		got := b.get(t, tenant, o.ID)
		won[got.State]++
		switch {
		case moved == nil && got.State == orders.PickupOngoing && got.Attempt == 1:
		case errors.Is(moved, orders.ErrNotFound) && got.State == orders.Created && got.Attempt == 2:
		default:
			t.Errorf("%s in attempt %d, the courier: %v", got.State, got.Attempt, moved)
		}
	}
	t.Logf("%v", won)
}

func TestOffersEndByThemselvesWhileItRuns(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{Offer: 50 * time.Millisecond}), event.NewID()
	forever := newBed(t, orders.Config{Offer: -1})
	kept, _ := forever.assigned(t, tenant)
	o, _ := b.assigned(t, tenant)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, s := range []bed{b, forever} {
		all.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	late := time.After(time.Minute)
	for b.get(t, tenant, o.ID).State == orders.Assigned {
		select {
		case <-late:
			t.Fatal("it is never taken back")
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	all.Wait()
	if got := forever.get(t, tenant, kept.ID); got.State != orders.Assigned {
		t.Errorf("an offer without an end ended: %s", got.State)
	}
}

func TestTheSweepSeesOffersOnlyAndWritesNothing(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	b.create(t, tenant)
	o, _ := b.assigned(t, tenant)
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.orders_offered', 'on', true)`); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), `SELECT id FROM orders.orders`)
		if err != nil {
			return err
		}
		seen, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil || len(seen) != 1 || seen[0] != o.ID {
			t.Errorf("it sees %v, %v", seen, err)
		}
		for _, sql := range []string{`UPDATE orders.orders SET version = version`, `DELETE FROM orders.orders`} {
			if ct, err := tx.Exec(t.Context(), sql); err != nil || ct.RowsAffected() != 0 {
				t.Errorf("%s: %s, %v", sql, ct, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// However many couriers are silent at once, all of their orders are taken back
// when their time is over, and not so many with each look.
func TestACrowdThatNobodySetsOutForIsTakenBackAtOnce(t *testing.T) {
	t.Parallel()
	const many = 105
	b, ahead := clocked(t, orders.Config{})
	tenant := event.NewID()
	for range many {
		b.assigned(t, tenant)
	}
	ahead(6 * time.Minute)
	if n := b.takeBack(t); n != many {
		t.Errorf("%d of %d are taken back", n, many)
	}
}
